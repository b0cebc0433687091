"""Accuracy of each group of images (site, camera, sex), the lowest first, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, panels
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.run_names import legend_below, short_names, shortened
from oltr.figures.style import SERIES, clean, new_figure
from oltr.metrics.group_numbers import GroupAccuracy, GroupNumbers

MOST, WORST, BEST = 30, 15, 5  # of more groups than MOST these many are drawn
PALE, MARKED = 0.4, SERIES[1]


def shown_groups(runs: Mapping[str, GroupAccuracy]) -> list[str]:
    """Groups with known images, by their mean accuracy over the runs; of many the worst and the best.

    Of many, those with few images are left out before, unless too few others are left.
    """
    found: dict[str, list[GroupNumbers]] = {}
    for run in runs.values():
        for group in filter(lambda group: group.images, run.groups):
            found.setdefault(group.name, []).append(group)
    names = sorted(found, key=lambda name: float(np.mean([group.accuracy for group in found[name]])))
    if len(names) <= MOST:
        return names
    few = min(run.few for run in runs.values())
    large = [name for name in names if found[name][0].images >= few]
    names = large if len(large) >= WORST + BEST else names
    return [*names[:WORST], *names[-BEST:]]


def by_group_figure(
    columns: Mapping[str, Mapping[str, GroupAccuracy]],
    share: str = "accuracy on known test images",
    unit: str = "images",
) -> Figure:
    """A panel for each column of the data, in it a row for each group and a dot for each run (by name).

    `share` is the name of the x axis, without its unit.
    """
    if not columns:
        raise UserError(
            "No column was named whose groups could be shown.", try_this="oltr report RUN --by COLUMN"
        )
    shown = {column: shown_groups(runs) for column, runs in columns.items()}
    if not all(shown.values()):
        raise UserError("No group has known images.")
    rows = [len(names) + 1.5 for names in shown.values()]
    figure = new_figure(7.0, 0.9 + sum(0.45 + 0.24 * number for number in rows))
    axes = figure.subplots(len(columns), squeeze=False, height_ratios=rows)[:, 0]
    for panel, (column, runs) in zip(axes, columns.items(), strict=True):
        _draw(panel, column, short_names(runs), shown[column], (share, unit))
    names = short_names(next(iter(columns.values())))
    pairs = zip(names, SERIES, strict=False)
    marks = [Line2D([], [], marker="o", color=colour, label=name) for name, colour in pairs]
    if len(marks) == 1:
        marks[0].set_label(f"accuracy, 95 % interval (pale: few {unit})")
        marks.append(Line2D([], [], marker="o", color=MARKED, label="worst group"))
        if any(group.expected is not None for runs in columns.values() for group in _groups(runs)):
            grey = Line2D([], [], marker="d", linestyle="", color="0.45", label="expected from its classes")
            marks.append(grey)
    legend_below(figure, marks)
    return figure


def _groups(runs: Mapping[str, GroupAccuracy]) -> list[GroupNumbers]:
    return [group for run in runs.values() for group in run.groups]


def _draw(
    axes: Axes, column: str, runs: Mapping[str, GroupAccuracy], names: list[str], words: tuple[str, str]
) -> None:
    """Rows from the worst group at the top to the best; a wider step where groups are left out."""
    places = dict(zip(names, np.arange(len(names), dtype=float), strict=True))
    first, alone = next(iter(runs.values())), len(runs) == 1
    (share, unit), every = words, {group.name for group in _groups(runs) if group.images}
    left_out = len(every) - len(names)
    if left_out > 0:
        places |= {name: places[name] + 1 for name in names[WORST:]}
        axes.text(0.5, WORST, f"{left_out:,} groups are not shown", transform=axes.get_yaxis_transform(),
                  ha="center", va="center", fontsize="small", color="0.4")  # fmt: skip
    for number, (run, colour) in enumerate(zip(runs.values(), SERIES, strict=False)):
        aside = 0.0 if alone else 0.6 * ((number + 0.5) / len(runs) - 0.5)
        axes.axvline(100 * (run.overall.accuracy or 0), color=colour, linewidth=0.9, linestyle=":")
        for group in run.groups:
            if group.name not in places or not group.images:
                continue
            worst = alone and group.name == run.worst
            _dot(axes, group, places[group.name] + aside, MARKED if worst else colour, group.images < run.few)
            if alone and group.expected is not None:
                axes.plot(100 * group.expected, places[group.name], "d", color="0.45", markersize=4, zorder=2)
    sizes = {group.name: group.images for group in _groups(runs)}
    labels = [f"{shortened(name, 28)}  ({sizes[name]:,})" for name in names]
    axes.set_yticks(list(places.values()), labels, fontsize="small", parse_math=False)
    if alone and first.worst in places:
        axes.get_yticklabels()[names.index(first.worst)].set(color=MARKED, fontweight="bold")
    axes.set_ylim(max(places.values()) + 0.7, -0.7)
    clean(axes, f"{share} (%); dotted: all {unit}", f"{shortened(column)} ({unit})",
          _title(column, first) if alone else f"By {shortened(column)}")  # fmt: skip
    axes.grid(axis="x", color="0.9", linewidth=0.8)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(max(axes.get_xlim()[0], -2), 102)


def _dot(axes: Axes, group: GroupNumbers, place: float, colour: str, few: bool) -> None:
    within = group.interval["accuracy"]
    assert group.accuracy is not None and within is not None
    alpha = PALE if few else 1.0
    axes.hlines(place, 100 * within[0], 100 * within[1], color=colour, linewidth=1.6, alpha=alpha)
    axes.plot(100 * group.accuracy, place, "o", color=colour, markersize=5, alpha=alpha, zorder=3)


def _title(column: str, found: GroupAccuracy) -> str:
    if found.gap is None or found.gap_by_chance is None:
        return f"By {shortened(column)}"
    gap, chance = (f"{100 * value:.1f}" for value in (found.gap, found.gap_by_chance))
    return f"By {shortened(column)}: gap {gap} points; by chance up to {chance}"


def draw(runs: Runs) -> Figure:
    """By the columns that were asked for; of runs whose data lack one, by none."""
    columns = dict.fromkeys(column for run in runs for column in run.by_group)
    return by_group_figure(
        {
            column: {run.name: run.by_group[column] for run in runs if column in run.by_group}
            for column in columns
        }
    )


FIGURE = RunFigure(
    order=45,
    name="by-group",
    title="Accuracy by group",
    paper=BEYOND,
    caption="Groups by a column of the data (site, camera, sex), the lowest accuracy first. Look for groups "
    "whose 95 % interval lies left of the dotted line (all images): there the model does worse. Where the "
    "grey mark (accuracy expected from the group's classes) is as low, the classes are hard; where it is "
    "not, the group itself is.",
    needs="a column of the data, named with --by",
    draw=draw,
    choose=panels,
    made_by="oltr report RUN --by COLUMN --figures DIR",
)
