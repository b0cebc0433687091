"""Accuracy and F-measure against the open-set threshold, as in the paper's analysis of its threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from oltr.analysis.style import OPEN_COLOUR, RUN_STYLES, SHOT_COLOURS, clean, new_figure
from oltr.analysis.values import right_answers, score_name, score_values
from oltr.errors import UserError
from oltr.evaluation.accuracy import tally
from oltr.evaluation.fmeasure import f_from_counts
from oltr.evaluation.outputs import Outputs
from oltr.evaluation.shots import GROUPS, shot_groups
from oltr.openset import SCORES, Score

MEASURES = {
    "many": "accuracy, many-shot",
    "medium": "accuracy, medium-shot",
    "few": "accuracy, few-shot",
    "overall": "accuracy, overall",
    "f_measure": "F-measure",
}
_COLOURS = {**SHOT_COLOURS, "overall": "black", "f_measure": OPEN_COLOUR}


@dataclass(frozen=True)
class ThresholdSweep:
    """Accuracy by shot group (only those with test images), overall, and F-measure at each threshold."""

    score: Score
    thresholds: np.ndarray  # T float64, rising, in the score's own units
    measures: dict[str, np.ndarray]  # many, medium, few, overall, f_measure → T float64, fractions


def threshold_sweep(
    outputs: Mapping[str, Outputs],
    train_counts: Sequence[int] | np.ndarray,
    score: str | Score = "softmax",
    thresholds: Sequence[float] | np.ndarray | None = None,
    *,
    shots: str = "standard",
    read: Mapping[str, Outputs] | None = None,
) -> ThresholdSweep:
    """At each threshold t the mean of (accepted and right)_c / images_c over the classes c of a group, and F.

    Sorted once, the images accepted at t are the first of them. Without thresholds 201 are spread evenly
    from the smallest value of the score to the largest.
    """
    chosen = SCORES[score] if isinstance(score, str) else score
    right = right_answers(outputs)
    known, unseen = (score_values(outputs, split, chosen, read).numpy() for split in ("test", "open"))
    if (classes := outputs["test"].logits.shape[1]) != len(train_counts):
        raise UserError(f"The outputs have {classes} classes, but there are {len(train_counts)} counts.")
    if thresholds is None:
        ends = np.concatenate([known, unseen])
        thresholds = np.linspace(ends.min(), ends.max(), 201)
    steps = np.sort(np.asarray(thresholds, dtype=np.float64))
    if steps.ndim != 1 or not len(steps) or not np.isfinite(steps).all():
        raise UserError("The thresholds must be one or more finite numbers.")
    sign = -1 if chosen.higher_is_known else 1  # an image is accepted where sign · value <= sign · threshold
    labels = outputs["test"].labels
    _, images = tally(labels, labels, classes)
    order = np.argsort(sign * known[right])
    values, names = (sign * known[right])[order], labels.numpy()[right][order]
    accepted = np.searchsorted(values, sign * steps, side="right")  # T, right answers alone
    measures = {}
    kinds = shot_groups(train_counts, shots)
    for group in (*GROUPS, "overall"):
        present = (images.numpy() > 0) & ((kinds == group) | (group == "overall"))
        if present.any():
            weight = present / np.maximum(images.numpy(), 1) / present.sum()
            measures[group] = np.insert(weight[names].cumsum(), 0, 0.0)[accepted]
    mistaken = np.searchsorted(np.sort(sign * unseen), sign * steps, side="right")  # open images accepted
    counts = torch.from_numpy(np.stack([accepted, len(right) - accepted, mistaken], axis=1))
    measures["f_measure"] = np.array([f_from_counts(row) for row in counts])
    return ThresholdSweep(chosen, steps, measures)


def threshold_sweep_figure(runs: Mapping[str, ThresholdSweep]) -> Figure:
    """All measures of one run on one pair of axes; of several runs a panel for each measure."""
    if not runs:
        raise UserError("There are no runs to draw.")
    if len({run.score.name for run in runs.values()}) > 1:
        raise UserError("The runs were swept over different scores.", try_this="the same score for all")
    threshold = f"threshold on the {score_name(next(iter(runs.values())).score)}"
    return _one(*next(iter(runs.items())), threshold) if len(runs) == 1 else _several(runs, threshold)


def _one(name: str, run: ThresholdSweep, threshold: str) -> Figure:
    figure = new_figure(6.8, 3.6)
    axes = figure.add_subplot()
    for measure, values in run.measures.items():
        (line,) = axes.plot(run.thresholds, 100 * values, label=MEASURES[measure], marker=_marker(run))
        line.set(color=_COLOURS[measure], linestyle="--" if measure == "f_measure" else "-")
    clean(axes, threshold, "accuracy and F-measure (%)", name)
    axes.set_ylim(0, 100)
    figure.legend(frameon=False, loc="outside right center", fontsize="small")
    return figure


def _marker(run: ThresholdSweep) -> str:
    return "." if len(run.thresholds) < 30 else ""  # a single threshold would make no line


def _several(runs: Mapping[str, ThresholdSweep], threshold: str) -> Figure:
    shown = [measure for measure in MEASURES if any(measure in run.measures for run in runs.values())]
    rows = -(-len(shown) // 3)
    figure = new_figure(8.0, 1.0 + 2.1 * rows)
    grid = figure.subplots(rows, 3, sharex=True, sharey=True, squeeze=False).ravel()
    for place, (axes, measure) in enumerate(zip(grid, shown, strict=False)):
        axes.set_prop_cycle(RUN_STYLES)
        for name, run in runs.items():
            values = run.measures.get(measure, np.full(len(run.thresholds), np.nan))
            axes.plot(run.thresholds, 100 * values, label=name, marker=_marker(run))
        clean(axes, "", "", MEASURES[measure])
        axes.tick_params(labelbottom=place + 3 >= len(shown))  # also above a cell that stays empty
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    grid[0].set_ylim(0, 100)
    figure.supxlabel(threshold, fontsize="medium")
    figure.supylabel("accuracy or F-measure (%)", fontsize="medium")
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, loc="outside right center", fontsize="small")
    return figure
