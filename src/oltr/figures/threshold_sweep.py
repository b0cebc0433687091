"""Accuracy and F-measure against the open-set threshold, as in the paper's analysis of its threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, with_open
from oltr.figures.figure import RunFigure
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import (
    OPEN_COLOUR,
    RUN_STYLES,
    SERIES,
    SHOT_COLOURS,
    THRESHOLD_LINE,
    clean,
    new_figure,
)
from oltr.figures.values import right_answers, score_name, threshold_words
from oltr.metrics.accuracy import tally
from oltr.metrics.fmeasure import f_from_counts
from oltr.metrics.shots import GROUPS
from oltr.openset import SCORES
from oltr.runs.explain.score_place import finite_values
from oltr.runs.trained_run import TrainedRun

MEASURES = {
    "many": "accuracy, many-shot",
    "medium": "accuracy, medium-shot",
    "few": "accuracy, few-shot",
    "overall": "accuracy, overall",
    "f_measure": "F-measure",
}
COMMON = "0.35"  # of what all runs share
_COLOURS = {**SHOT_COLOURS, "overall": "black", "f_measure": OPEN_COLOUR}


@dataclass(frozen=True)
class ThresholdSweep:
    """Accuracy by shot group (only those with test images), overall, and F-measure at each threshold."""

    score: str
    thresholds: np.ndarray  # T float64, rising, in the score's own units
    measures: dict[str, np.ndarray]  # many, medium, few, overall, f_measure → T float64, fractions
    threshold: float | None = None  # of the run's rejection rule; None where that has another score


def threshold_sweep(
    run: TrainedRun, thresholds: Sequence[float] | np.ndarray | None = None, score: str | None = None
) -> ThresholdSweep:
    """At each threshold t the mean of (accepted and right)_c / images_c over the classes c of a group, and F.

    Sorted once, the images accepted at t are the first of them. Without thresholds 201 are spread evenly
    from the smallest value of the score to the largest, and as far as the run's own threshold.
    """
    name = score or run.rule.score
    used = run.rule.threshold if name == run.rule.score else None
    known, unseen = finite_values(run, "test", name), finite_values(run, "open", name)
    if thresholds is None:
        ends = np.concatenate([known, unseen, [] if used is None else [used]])
        thresholds = np.linspace(ends.min(), ends.max(), 201)
    steps = np.sort(np.asarray(thresholds, dtype=np.float64))
    if steps.ndim != 1 or not len(steps) or not np.isfinite(steps).all():
        raise UserError("The thresholds must be one or more finite numbers.")
    sign = -1 if SCORES[name].higher_is_known else 1  # accepted where sign · value <= sign · threshold
    labels, right = run.outputs["test"].labels, right_answers(run)
    _, images = tally(labels, labels, len(run.groups))
    order = np.argsort(sign * known[right])
    values, classes = (sign * known[right])[order], labels.numpy()[right][order]
    accepted = np.searchsorted(values, sign * steps, side="right")  # T, right answers alone
    measures = {}
    for group in (*GROUPS, "overall"):
        present = (images.numpy() > 0) & ((run.groups == group) | (group == "overall"))
        if present.any():
            weight = present / np.maximum(images.numpy(), 1) / present.sum()
            measures[group] = np.insert(weight[classes].cumsum(), 0, 0.0)[accepted]
    mistaken = np.searchsorted(np.sort(sign * unseen), sign * steps, side="right")  # open images accepted
    counts = torch.from_numpy(np.stack([accepted, len(right) - accepted, mistaken], axis=1))
    measures["f_measure"] = np.array([f_from_counts(row) for row in counts])
    return ThresholdSweep(name, steps, measures, used)


def threshold_sweep_figure(runs: Mapping[str, ThresholdSweep]) -> Figure:
    """All measures of one run on one pair of axes; of several runs a panel for each measure."""
    if not runs:
        raise UserError("There are no runs to draw.")
    if len({run.score for run in runs.values()}) > 1:
        raise UserError("The runs were swept over different scores.", try_this="the same score for all")
    name = f"threshold on the {score_name(next(iter(runs.values())).score)}"
    short = short_names(runs)
    return _one(*next(iter(short.items())), name) if len(short) == 1 else _several(short, name)


def _one(name: str, run: ThresholdSweep, threshold: str) -> Figure:
    figure = new_figure(6.4, 4.0)
    axes = figure.add_subplot()
    for measure, values in run.measures.items():
        (line,) = axes.plot(run.thresholds, 100 * values, label=MEASURES[measure], marker=_marker(run))
        line.set(color=_COLOURS[measure], linestyle="--" if measure == "f_measure" else "-")
    clean(axes, threshold, "accuracy and F-measure (%)", name)
    marks = list(axes.lines)
    if run.threshold is not None:
        label = f"{threshold_words([run.threshold])}, used by the run"
        marks.append(axes.axvline(run.threshold, label=label, **THRESHOLD_LINE))
    axes.set_ylim(0, 100)
    legend_below(figure, marks)
    return figure


def _marker(run: ThresholdSweep) -> str:
    return "." if len(run.thresholds) < 30 else ""  # a single threshold would make no line


def _several(runs: Mapping[str, ThresholdSweep], threshold: str) -> Figure:
    shown = [measure for measure in MEASURES if any(measure in run.measures for run in runs.values())]
    rows = -(-len(shown) // 3)
    figure = new_figure(8.0, 1.2 + 2.2 * rows)
    grid = figure.subplots(rows, 3, sharex=True, sharey=True, squeeze=False).ravel()
    used = [run.threshold for run in runs.values() if run.threshold is not None]
    shared = len(used) == len(runs) and len(set(used)) == 1
    for place, (axes, measure) in enumerate(zip(grid, shown, strict=False)):
        axes.set_prop_cycle(RUN_STYLES)
        marks = []
        for name, run in runs.items():
            values = run.measures.get(measure, np.full(len(run.thresholds), np.nan))
            (line,) = axes.plot(run.thresholds, 100 * values, label=name, marker=_marker(run))
            marks.append(line)
            if run.threshold is not None and not shared:
                top = 1 if len(runs) <= len(SERIES) else 0.15  # a fence of lines would hide the curves
                axes.axvline(run.threshold, 0, top, color=line.get_color(), linestyle="--", linewidth=1)
        if shared:
            axes.axvline(used[0], color=COMMON, linestyle="--", linewidth=1)
        clean(axes, "", "", MEASURES[measure])
        axes.tick_params(labelbottom=place + 3 >= len(shown))  # also above a cell that stays empty
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    grid[0].set_ylim(0, 100)
    # Not a name for the whole figure: the legend below would cover it.
    grid[min(3 * rows - 2, len(shown) - 1)].set_xlabel(threshold)
    figure.supylabel("accuracy or F-measure (%)", fontsize="medium")
    if used:
        whose = "used by the runs" if shared else "each in its colour"
        words = f"{threshold_words(used)}, {whose}"
        marks.append(Line2D([], [], color=COMMON, linestyle="--", linewidth=1, label=words))
    legend_below(figure, marks)
    return figure


def draw(runs: Runs) -> Figure:
    return threshold_sweep_figure({run.name: threshold_sweep(run) for run in runs})


FIGURE = RunFigure(
    order=110,
    name="threshold",
    title="Influence of the open-set threshold",
    paper="Fig. 8 (b)",
    caption="Accuracy on known images and F-measure against the threshold; the run's own is dashed. Look for "
    "a plateau of the F-measure: if it is wide, the exact threshold matters little. Where few-shot accuracy "
    "falls first, rejecting unknown images costs accuracy on rare classes.",
    needs="open images; the same score for all runs",
    draw=draw,
    choose=with_open,
)
