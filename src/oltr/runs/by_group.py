"""How well a run does on each group of its test and open images: each site, camera or sex."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oltr.data.groups import named_groups
from oltr.errors import UserError
from oltr.metrics.by_group import group_accuracy
from oltr.metrics.group_numbers import GroupAccuracy, GroupNumbers
from oltr.runs.tables import MISSING, Table
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


def measure_groups(run: TrainedRun, by: str) -> GroupAccuracy:
    """By a column of the data that the run is measured on, or by folder, under its rejection rule."""
    names = _group_of_each(run, by)
    decided = run.decisions
    if len(names) != len(decided.labels):
        raise UserError(
            f"{run.name} has outputs of {len(decided.labels):,} test and open images, its data have "
            f"{len(names):,}.",
            try_this="training the run again",
        )
    return group_accuracy(decided.likeliest, decided.labels, names, run.rule.rejects(decided.values))


def _group_of_each(run: TrainedRun, by: str) -> list[str]:
    """The group of each test and each open image, in the order of `run.decisions`."""
    try:
        manifest = run.other_data or run.manifest
    except UserError as problem:
        raise UserError(
            f"The groups by {by!r} are in the data of {run.name}, which are not at hand.",
            problem.why,
            "oltr evaluate RUN --source SOURCE --by COLUMN",
        ) from None
    names = named_groups(manifest, by)
    return [names[row] for split in ("test", "open") for row in manifest.positions(split)]


def groups_table(by: str, found: GroupAccuracy) -> Table:
    """One row per group, the lowest accuracy first, and all images under them."""
    has_open = found.overall.open_images > 0
    groups = [
        ("", [by, "images", "classes"]),
        ("known images", ["accuracy", "95 %", "class mean", "expected", "rejected"]),
        *([("open", ["images", "unknown"])] if has_open else []),
    ]
    rows = [_row(group, has_open) for group in (*found.groups, found.overall)]
    return Table(f"By {by}: {count(len(found.groups), 'group')}", groups, rows, _notes(found, has_open))


def gap_words(found: GroupAccuracy) -> str:
    """The gap between the best and the worst group, and how much of it chance may be."""
    if found.gap is None or found.gap_interval is None or found.gap_by_chance is None:
        return "No two groups have known images, so there is no gap."
    low, high = (f"{100 * end:.1f}".replace("-", "−") for end in found.gap_interval)
    return (
        f"Gap: {100 * found.gap:.1f} points, {found.best} (best) less {found.worst} (worst), 95 % {low} to "
        f"{high}. If groups did not matter, chance would make gaps up to {100 * found.gap_by_chance:.1f}."
    )


def _notes(found: GroupAccuracy, has_open: bool) -> list[str]:
    legend = (
        "Percent of known test images whose likeliest class is right. Class mean: over the classes that the "
        "group has. Expected: the accuracy if each class did as well there as everywhere. Rejected: known "
        "images called unknown."
    )
    legend += " Unknown: open images called so." if has_open else ""
    small = sum(0 < group.images < found.few for group in found.groups)
    if not small:
        return [gap_words(found), legend]
    words = f"{count(small, 'group')} {'has' if small == 1 else 'have'} fewer than {found.few} known images"
    large = sum(group.images >= found.few for group in found.groups)
    return [gap_words(found), f"{words}{': in no gap, and ' if large > 1 else ': '}mostly chance.", legend]


def _row(group: GroupNumbers, has_open: bool) -> list[str]:
    within = group.interval["accuracy"]
    ends = MISSING if within is None else " to ".join(f"{100 * end:.1f}" for end in within)
    row = [group.name, f"{group.images:,}", f"{group.classes:,}", _percent(group.accuracy), ends]
    row += [_percent(value) for value in (group.class_mean, group.expected, group.rejected)]
    return [*row, f"{group.open_images:,}", _percent(group.unknown_recall)] if has_open else row


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f}"
