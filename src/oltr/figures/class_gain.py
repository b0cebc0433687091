"""F1 of each class, and of the open images as one more class, that one run gains over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from torch import Tensor

from oltr.errors import UserError
from oltr.figures.distribution import BARS_UP_TO
from oltr.figures.run_names import short_names
from oltr.figures.style import OPEN_COLOUR, SHOT_COLOURS, clean, new_figure
from oltr.metrics.accuracy import group_means, per_class_f1
from oltr.metrics.shots import GROUPS
from oltr.runs.decisions import Decisions, class_groups
from oltr.runs.outputs import OPEN


@dataclass(frozen=True, eq=False)
class ClassGain:
    """F1 of a run minus F1 of a baseline, in fractions, classes by falling number of training images."""

    classes: np.ndarray  # K int64, class numbers
    groups: np.ndarray  # K strings
    gains: np.ndarray  # K float64, NaN for a class without test images
    means: dict[str, float | None]  # of many, medium, few and overall; None for no classes
    unknown: float | None = None  # of the open images, as one class; None without open images


def class_gain(
    run: Decisions, baseline: Decisions, counts: Sequence[int] | np.ndarray, shots: str = "standard"
) -> ClassGain:
    """From what both made of the same images; an open image given a class counts against that class."""
    if not torch.equal(run.labels, baseline.labels) or run.num_classes != baseline.num_classes:
        raise UserError("The two runs were not tested on the same images.", "Their labels differ.")
    groups = class_groups(run, counts, shots)
    gains = _f1(run) - _f1(baseline)
    unknown = None if gains[-1].isnan() else float(gains[-1])
    return _sorted(gains[:-1], np.asarray(counts), groups, unknown)


def _f1(decisions: Decisions) -> Tensor:
    """F1 of each class and of the open images, K+1 float64; NaN where no images."""
    last = decisions.num_classes
    predictions, labels = (
        classes.masked_fill(classes == OPEN, last) for classes in (decisions.predictions, decisions.labels)
    )
    return per_class_f1(predictions, labels, last + 1)


def _sorted(gains: Tensor, counts: np.ndarray, groups: np.ndarray, unknown: float | None) -> ClassGain:
    order = np.argsort(-counts, kind="stable")
    return ClassGain(order, groups[order], gains.numpy()[order], group_means(gains, groups), unknown)


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
