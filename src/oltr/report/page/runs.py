"""Run folders as a page shows them: opened once, measured anew, and whether they can stand side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from oltr.errors import UserError
from oltr.figures.choose_runs import best_first
from oltr.metrics.shots import SHOT_RULES, shot_sizes
from oltr.report.compare import load_reports
from oltr.report.page.disagreements import classes_of, disagreements
from oltr.runs.report import Report
from oltr.runs.rule import choose_rule, decision_of
from oltr.runs.trained_run import TrainedRun
from oltr.wording import first_few


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A run and its numbers, measured anew from its outputs."""

    run: TrainedRun
    report: Report
    caution: str = ""  # why its numbers are others than those of its report.json

    @property
    def name(self) -> str:
        return self.run.name


def measured_runs(paths: Sequence[Path], by: Sequence[str] = ()) -> list[MeasuredRun]:
    """The runs in the order given, refused where they do not know the same classes.

    `by` are the columns of their data whose groups are told of, those of each report.json unless given.
    """
    if not paths:
        raise UserError("No run folder was given.", try_this="oltr report runs/a")
    given: dict[Path, Path] = {}
    for path in paths:
        given.setdefault(path.resolve(), path)
    kept = load_reports(given)
    runs = [TrainedRun(path, name=name) for name, path in zip(kept, given.values(), strict=True)]
    _check_same_classes(runs)
    _share_data(runs)
    return [_measured(run, kept[run.name], by) for run in runs]


def untested_runs(paths: Sequence[Path]) -> list[TrainedRun]:
    """The runs, if the data of none of them had test images, so that a page would have no numbers."""
    if not all((path / "run.yaml").is_file() for path in paths):
        return []
    runs = [TrainedRun(path) for path in dict.fromkeys(paths)]
    tested = [run.facts["data"].get("images", {}).get("test") != 0 for run in runs]
    return [] if any(tested) else runs


def best_run(runs: Sequence[MeasuredRun]) -> MeasuredRun:
    """The one with the highest closed-set accuracy, the first among equals."""
    best = best_first([each.run for each in runs])[0]
    return next(each for each in runs if each.run is best)


def on_the_same_data(runs: Sequence[MeasuredRun], as_run: MeasuredRun) -> list[MeasuredRun]:
    """Those whose numbers compare with that run's."""
    return [each for each in runs if _fingerprint(each.run) == _fingerprint(as_run.run)]


def data_cautions(runs: Sequence[MeasuredRun]) -> list[str]:
    """Why numbers are not those of report.json, or do not compare between runs that saw other images."""
    first = runs[0]
    cautions = [f"{each.name}: {each.caution}" for each in runs if each.caution]
    others = [each.name for each in runs if _fingerprint(each.run) != _fingerprint(first.run)]
    if others:
        cautions.append(
            f"Not the same data as {first.name}: {', '.join(others)}. Differences in the results may come "
            "from the data; figures that need the same images say so in their place."
        )
    return cautions


def _measured(run: TrainedRun, kept: Report, by: Sequence[str]) -> MeasuredRun:
    """Under its own rejection rule and the shot groups of its report.json."""
    rules = (run.shots, *SHOT_RULES)
    shots = next((rule for rule in rules if shot_sizes(run.counts, rule) == kept["shots"]), run.shots)
    run.config = dataclasses.replace(run.config, shots=shots)  # type: ignore[arg-type]
    try:
        run, caution = _readable(run)
        run.grouped_by, lost = _columns(run, kept, by)
        report = dataclasses.replace(run.measure(), by_group=run.by_group or None)
    except UserError as problem:
        hint = problem.try_this or "the page without this run"
        raise UserError(f"{run.name}: {problem.what}", problem.why, hint) from None
    if not caution and (others := disagreements(kept, report)):
        changed = run.folder.history.is_file() and classes_of(kept) != classes_of(report)
        caution = (
            "its classes were changed after its report.json was written."
            if changed
            else f"its report.json does not match the run ({'; '.join(others)})."
        )
        caution += " This page is computed from its outputs, run.yaml and classes.json; "
        caution += f"oltr evaluate {run.path} updates the report."
    return MeasuredRun(run, report, " ".join(filter(None, (caution, lost))))


def _columns(run: TrainedRun, kept: Report, by: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Those asked for; else those of its report.json, or why these are not there any more."""
    if by or not kept.by_group:
        return tuple(by), ""
    asked = run.under(run.rule)
    asked.grouped_by = tuple(kept.by_group)
    try:
        _ = asked.by_group
    except UserError as problem:
        return (), f"its report.json has groups that cannot be computed now. {problem.what}"
    return asked.grouped_by, ""


def _readable(run: TrainedRun) -> tuple[TrainedRun, str]:
    """The run; by the softmax probability, with a caution, where its score cannot be computed any more."""
    try:
        for split in ("test", "open"):
            if split in run.outputs:
                run.scored(split)
    except UserError as problem:  # e.g. a score that compares with training images which are gone
        rule = choose_rule(run, "softmax", unknown_rate=decision_of(run).unknown_rate)
        caution = f"the score of its rejection rule cannot be computed now. {problem.what} The softmax "
        return run.under(rule), f"{caution}probability is used here."
    return run, ""


def _share_data(runs: Sequence[TrainedRun]) -> None:
    """Runs on the same data read their manifest once."""
    first: dict[tuple[str, ...], TrainedRun] = {}
    for run in runs:
        place = (str(run.facts.get("source")), str(run.facts.get("root")), _fingerprint(run))
        with suppress(UserError):  # figures that need the data say that they are gone
            run.own_data = first.setdefault(place, run).own_data


def _fingerprint(run: TrainedRun) -> str:
    return run.facts["data"]["fingerprint"]


def _check_same_classes(runs: Sequence[TrainedRun]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if first.class_names != run.class_names:
            strange = sorted(set(first.class_names) ^ set(run.class_names))
            why = f"Only one of them has: {first_few(strange)}." if strange else "Their order differs."
            raise UserError(
                f"{first.name} and {run.name} do not know the same classes, so they do not compare.",
                why,
                "a report of each: oltr report RUN",
            )
