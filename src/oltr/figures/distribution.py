"""Training images per class, as in the paper's appendix figure of its benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs
from oltr.figures.figure import RunFigure
from oltr.figures.style import SHOT_COLOURS, clean, new_figure
from oltr.metrics.shots import GROUPS, shot_groups
from oltr.wording import count

LOG_FROM = 20  # a largest class this many times the smallest needs a log axis to show the tail
BARS_UP_TO = 60  # classes; beyond it gaps between bars are noise, and thousands of bars are slow


def class_distribution(counts: Sequence[int] | np.ndarray, shots: str = "standard") -> Figure:
    """Training images of the K classes, largest first, coloured by shot group."""
    counts = np.sort(np.asarray(counts, dtype=np.int64))[::-1]
    if not counts.sum():
        raise UserError("There are no training images whose distribution could be drawn.")
    groups = shot_groups(counts, shots)
    log = counts.max() >= LOG_FROM * max(counts.min(), 1)
    floor = max(counts.min(), 1) / 2 if log else 0.0
    figure = new_figure(5.6, 3.5)  # narrow: it is to be read on a phone as a whole
    axes = figure.add_subplot()
    for group in GROUPS:
        ranks = np.flatnonzero(groups == group) + 1
        if len(ranks):
            images = count(int(counts[ranks - 1].sum()), "image")
            label = f"{group}-shot: {count(len(ranks), 'class')}\n{images}"
            colour = SHOT_COLOURS[group]
            if len(counts) <= BARS_UP_TO:
                axes.bar(ranks, counts[ranks - 1] - floor, 0.8, floor, color=colour, label=label)
            else:  # a group's classes are neighbours in rank: one stepped area
                edges = np.append(ranks, ranks[-1] + 1) - 0.5
                axes.stairs(counts[ranks - 1], edges, baseline=floor, fill=True, color=colour, label=label)
    _dress(axes, counts, floor, log)
    figure.legend(frameon=False, loc="outside lower center", ncols=3, fontsize="small", handlelength=1.2)
    return figure


def _dress(axes: Axes, counts: np.ndarray, floor: float, log: bool) -> None:
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(floor, counts.max() * (1.25 if log else 1.08))
    axes.set_xlim(0.5, len(counts) + 0.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value % 1 == 0 else ""))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    clean(
        axes,
        "class, ranked by number of training images",
        "training images per class" + (" (log)" if log else ""),
        _title(counts),
    )


def _title(counts: np.ndarray) -> str:
    sizes = f" of {counts.max():,} to {counts.min():,}" if len(counts) > 1 else ""
    return f"{count(int(counts.sum()), 'training image')}, {count(len(counts), 'class')}{sizes}"


def draw(runs: Runs) -> Figure:
    """Of the classes that all runs must share."""
    first = runs[0]
    if any(not np.array_equal(run.counts, first.counts) for run in runs):
        raise UserError(
            "The runs learned from different numbers of images per class.", try_this="a report of each"
        )
    return class_distribution(first.counts, first.shots)


FIGURE = RunFigure(
    order=20,
    name="distribution",
    title="Training images per class",
    paper="Fig. 10, 12, 13",
    caption="The data the runs learned from, largest class first. Look at how long the tail is, and at how "
    "much of it is few-shot: those classes decide whether a long-tail method is worth it.",
    needs="training counts",
    draw=draw,
)
