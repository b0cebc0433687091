"""F1 of each class, and of the open images as one more class, that one run gains over another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from torch import Tensor

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, baseline_first
from oltr.figures.distribution import BARS_UP_TO
from oltr.figures.figure import OF_SEVERAL, RunFigure
from oltr.figures.run_names import short_names
from oltr.figures.style import OPEN_COLOUR, SHOT_COLOURS, clean, new_figure
from oltr.metrics.accuracy import group_means, per_class_f1
from oltr.metrics.shots import GROUPS
from oltr.runs.outputs import OPEN
from oltr.runs.trained_run import TrainedRun


@dataclass(frozen=True, eq=False)
class ClassGain:
    """F1 of a run minus F1 of a baseline, in fractions, classes by falling number of training images."""

    classes: np.ndarray  # K int64, class numbers
    groups: np.ndarray  # K strings
    gains: np.ndarray  # K float64, NaN for a class without test images
    means: dict[str, float | None]  # of many, medium, few and overall; None for no classes
    unknown: float | None = None  # of the open images, as one class; None without open images


def class_gain(
    predictions: Tensor, baseline: Tensor, labels: Tensor, counts: np.ndarray, groups: np.ndarray
) -> ClassGain:
    """From two predictions for each of N images; an open image (-1) given a class counts against that class.

    `counts` and `groups` are the training images and the shot group of each of K classes.
    """
    gains = _f1(predictions, labels, len(groups)) - _f1(baseline, labels, len(groups))
    unknown = None if gains[-1].isnan() else float(gains[-1])
    order = np.argsort(-counts, kind="stable")
    known = gains[:-1]
    return ClassGain(order, groups[order], known.numpy()[order], group_means(known, groups), unknown)


def _f1(predictions: Tensor, labels: Tensor, classes: int) -> Tensor:
    """F1 of each class and of the open images, K+1 float64; NaN where no images."""
    named, true = (each.masked_fill(each == OPEN, classes) for each in (predictions, labels))
    return per_class_f1(named, true, classes + 1)


def class_gain_figure(runs: Mapping[str, ClassGain], baseline: str) -> Figure:
    """One panel per run, above each other with the same scale, in percentage points."""
    if not any(np.isfinite(gain.gains).any() for gain in runs.values()):
        raise UserError("No class has test images, so there is no gain that could be drawn.")
    figure = new_figure(height=0.8 + 2.7 * len(runs))
    panels = figure.subplots(len(runs), sharex=True, sharey=True, squeeze=False)[:, 0]
    ends: list[float] = []
    everyone = dict.fromkeys([baseline, *runs])  # shortened together: none may look like the baseline
    short = dict(zip(everyone, short_names(everyone, 36), strict=True))
    for axes, (name, gain) in zip(panels, runs.items(), strict=True):
        ends.append(_draw(axes, gain))
        means = [f"{group} {_points(value)}" for group, value in gain.means.items() if value is not None]
        means += [] if gain.unknown is None else [f"open {_points(gain.unknown)}"]
        title = f"{short[name]} over {short[baseline]}\nmean gain: {', '.join(means)}"
        clean(axes, "", "F1 gain (percentage points)", title)
    panels[-1].set_xlim(0.5, max(ends))
    panels[-1].set_xlabel("class, ranked by number of training images")
    groups = np.concatenate([gain.groups for gain in runs.values()])
    marks: list[Patch | Line2D] = [
        Patch(color=SHOT_COLOURS[group], label=f"{group}-shot") for group in GROUPS if group in groups
    ]
    if any(gain.unknown is not None for gain in runs.values()):
        marks.append(Patch(color=OPEN_COLOUR, label="open"))
    marks.append(Line2D([], [], color="black", label="mean of the group"))
    figure.legend(handles=marks, frameon=False, loc="outside lower center", ncols=5, fontsize="small")
    return figure


def _draw(axes: Axes, gain: ClassGain) -> float:
    """Where the last bar ends."""
    points, classes = 100 * gain.gains, len(gain.gains)
    for group in GROUPS:
        ranks = np.flatnonzero(gain.groups == group) + 1
        if len(ranks):  # a group's classes are neighbours in rank
            edges = np.append(ranks, ranks[-1] + 1) - 0.5
            if classes <= BARS_UP_TO:
                axes.bar(ranks, np.nan_to_num(points[ranks - 1]), 0.8, color=SHOT_COLOURS[group])
            else:
                axes.stairs(points[ranks - 1], edges, baseline=0, fill=True, color=SHOT_COLOURS[group])
            value = gain.means[group]
            if value is not None:
                axes.hlines(100 * value, edges[0], edges[-1], color="black", linewidth=1.2)
    end = classes + 0.5
    if gain.unknown is not None:  # a bar wide enough to be seen beside a thousand classes
        width = max(0.8, 0.02 * classes)
        axes.bar(end + width, 100 * gain.unknown, width, color=OPEN_COLOUR)
        end += 2 * width
    axes.axhline(0, color="0.4", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if 1 <= x <= classes else ""))
    return end


def _points(fraction: float) -> str:
    return f"{100 * fraction:+.1f}".replace("-", "−")


def gain_over(run: TrainedRun, baseline: TrainedRun) -> ClassGain:
    """Of a run over another that was tested on the same images."""
    ours, theirs = run.decisions, baseline.decisions
    if not ours.labels.equal(theirs.labels) or ours.num_classes != theirs.num_classes:
        raise UserError("The two runs were not tested on the same images.", "Their labels differ.")
    return class_gain(ours.predictions, theirs.predictions, ours.labels, run.counts, run.groups)


def draw(runs: Runs) -> Figure:
    """Over the first run."""
    if len(runs) < 2:
        raise UserError("There is one run only, so no gain over another.", try_this="oltr report PLAIN RUN")
    baseline, *others = runs
    return class_gain_figure({run.name: gain_over(run, baseline) for run in others}, baseline.name)


FIGURE = RunFigure(
    order=40,
    name="class-gain",
    title="F1 gain per class over a baseline",
    paper="Fig. 6",
    caption="The baseline is the plain model if it is among the runs, otherwise the first run. Classes are "
    "sorted from the most training images to the fewest, with the open images as one more class. Look at the "
    "right: gains on few-shot classes are what the method is for. Bars below zero on the left are what it "
    "costs on many-shot classes.",
    needs="two runs on the same images; the baseline is the plain model or the first run",
    draw=draw,
    choose=baseline_first,
    made_by=OF_SEVERAL,
)
