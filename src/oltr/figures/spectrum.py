"""Head, tail and open classes as one spectrum: what was seen of each class, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from torch import Tensor

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, panels
from oltr.figures.figure import RunFigure
from oltr.figures.run_names import short_names
from oltr.figures.style import OPEN_COLOUR, SHOT_COLOURS, clean, new_figure
from oltr.metrics.accuracy import group_means, per_class_accuracy
from oltr.metrics.shots import GROUPS
from oltr.runs.outputs import OPEN

OPEN_WIDTH, GAP = 0.11, 0.03  # of the open images' block and before it, as shares of the classes' width


@dataclass(frozen=True, eq=False)
class Spectrum:
    """K classes by falling number of training images, and the open images beyond the last of them."""

    classes: np.ndarray  # K int64, class numbers
    counts: np.ndarray  # K int64, training images
    groups: np.ndarray  # K strings
    accuracies: np.ndarray  # K float64, open-set accuracy in fractions; NaN for a class without test images
    means: dict[str, float | None]  # of many, medium, few and overall; None for no classes
    open_images: int
    unknown: float | None  # the share of the open images called unknown; None without any


def spectrum(predictions: Tensor, labels: Tensor, counts: np.ndarray, groups: np.ndarray) -> Spectrum:
    """From predictions for N test and open images; a rejected one (-1) counts against its class.

    `counts` and `groups` are the training images and the shot group of each of K classes.
    """
    accuracies = per_class_accuracy(predictions, labels, len(groups))
    called = predictions[labels == OPEN] == OPEN
    order = np.argsort(-counts, kind="stable")
    return Spectrum(
        classes=order,
        counts=counts[order],
        groups=groups[order],
        accuracies=accuracies.numpy()[order],
        means=group_means(accuracies, groups),
        open_images=len(called),
        unknown=float(called.double().mean()) if len(called) else None,
    )


def spectrum_figure(runs: Mapping[str, Spectrum]) -> Figure:
    """A strip of accuracies for each run, and below them what all runs learned from, on the same ranks."""
    if not runs:
        raise UserError("There are no runs to draw.")
    first = next(iter(runs.values()))
    if any(not np.array_equal(run.counts, first.counts) for run in runs.values()):
        raise UserError("The runs learned from different numbers of images per class.")
    if not first.counts.any():
        raise UserError("There are no training images whose distribution could be drawn.")
    if not any(np.isfinite(run.accuracies).any() for run in runs.values()):
        raise UserError("No class has test images, so no accuracy could be drawn.")
    figure = new_figure(height=2.6 + 1.9 * len(runs))
    heights = [1.0] * len(runs) + [1.15]
    *strips, ground = figure.subplots(len(runs) + 1, sharex=True, height_ratios=heights)
    for axes, (name, run) in zip(strips, short_names(runs, 72).items(), strict=True):
        _draw_accuracies(axes, run)
        clean(axes, "", "open-set\naccuracy (%)")
        axes.set_title(_title(name, run), loc="left", fontsize="small", parse_math=False)
    _draw_counts(ground, first)
    clean(ground, "class, ranked by number of training images", "training images\nper class (log)")
    ground.set_xlim(0.5, 0.5 + len(first.counts) * (1 + GAP + OPEN_WIDTH))
    figure.legend(
        handles=_legend(list(runs.values())),
        frameon=False,
        loc="outside lower center",
        ncols=6,
        fontsize="small",
    )
    return figure


def _draw_accuracies(axes: Axes, run: Spectrum) -> None:
    size = float(np.clip(1200 / len(run.classes), 3, 24))  # an area: of many points each is small
    for group, edges, ranks in _stretches(run):
        points = 100 * run.accuracies[ranks - 1]
        axes.scatter(ranks, points, s=size, color=SHOT_COLOURS[group], linewidths=0, clip_on=False)
        value = run.means[group]
        if value is not None:
            axes.hlines(100 * value, edges[0], edges[-1], color="black", linewidth=1.4)
    _draw_open(axes, run)
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 25, 50, 75, 100])


def _draw_open(axes: Axes, run: Spectrum) -> None:
    """The share called unknown; its words in the bar where there is no room above."""
    left, width = _block(run)
    middle, plate = left + width / 2, {"facecolor": "white", "linewidth": 0, "pad": 1}
    words: dict[str, Any] = {"ha": "center", "fontsize": "x-small"}
    if run.unknown is None:
        axes.text(middle, 50, "no open\nimages", va="center", color="0.3", bbox=plate, **words)
        return
    share, said = 100 * run.unknown, f"{100 * run.unknown:.0f} %\ncalled\nunknown"
    axes.bar(left, share, width, align="edge", color=OPEN_COLOUR)
    axes.hlines(share, left, left + width, color="black", linewidth=1.4)
    if share > 55:
        axes.text(middle, share - 6, said, va="top", color="white", **words)
    else:
        axes.text(middle, share + 5, said, va="bottom", color="0.3", bbox=plate, **words)


def _draw_counts(axes: Axes, run: Spectrum) -> None:
    floor = max(int(run.counts.min()), 1) / 2
    for group, edges, ranks in _stretches(run):  # a group's classes are neighbours in rank: one stepped area
        seen = np.maximum(run.counts[ranks - 1], floor)
        axes.stairs(seen, edges, baseline=floor, fill=True, color=SHOT_COLOURS[group])
    axes.set_yscale("log")
    axes.set_ylim(floor, max(run.counts.max(), 1) * 1.25)
    axes.yaxis.set_minor_locator(NullLocator())
    # By hand: over less than a power of ten a log axis is marked as a linear one.
    ticks = [step * 10**power for power in range(9) for step in (1, 2, 5)]
    ticks = [tick for tick in ticks if floor <= tick <= run.counts.max()] or [int(run.counts.max())]
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    known = len(run.counts)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if 1 <= x <= known else ""))
    left, width = _block(run)
    words = "never\nseen" if run.open_images else ""
    place = axes.get_xaxis_transform()  # x in classes, y in shares of the height
    axes.text(
        left + width / 2, 0.04, words, ha="center", va="bottom", fontsize="x-small", color="0.3",
        transform=place, bbox={"facecolor": "white", "linewidth": 0, "pad": 1},
    )  # fmt: skip


def _stretches(run: Spectrum) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Each group that has classes, with the borders between them and their ranks."""
    found = []
    for group in GROUPS:
        ranks = np.flatnonzero(run.groups == group) + 1
        if len(ranks):
            found.append((group, np.append(ranks, ranks[-1] + 1) - 0.5, ranks))
    return found


def _block(run: Spectrum) -> tuple[float, float]:
    """Left border and width of the open images' block, in ranks."""
    classes = len(run.classes)
    return 0.5 + classes * (1 + GAP), classes * OPEN_WIDTH


def _title(name: str, run: Spectrum) -> str:
    means = [f"{group} {100 * value:.1f}" for group, value in run.means.items() if value is not None]
    rest = "" if run.unknown is None else f"; of open images {100 * run.unknown:.1f} % called unknown"
    return f"{name}\naccuracy: {', '.join(means)} %{rest}"


def _legend(runs: Sequence[Spectrum]) -> list[Line2D | Patch]:
    marks: list[Line2D | Patch] = [
        Patch(color=SHOT_COLOURS[group], label=f"{group}-shot") for group, *_ in _stretches(runs[0])
    ]
    if any(run.open_images for run in runs):
        marks.append(Patch(color=OPEN_COLOUR, label="open"))
    return [*marks, Line2D([], [], color="black", label="mean of the group")]


def draw(runs: Runs) -> Figure:
    return spectrum_figure(
        {
            run.name: spectrum(run.decisions.predictions, run.decisions.labels, run.counts, run.groups)
            for run in runs
        }
    )


FIGURE = RunFigure(
    order=30,
    name="spectrum",
    title="Open-set accuracy of head, tail and open classes",
    paper="Fig. 1, 9",
    caption="Bottom: training images per class, largest class first. Top: open-set accuracy of the classes "
    "in the same order, with the open images at the right end. Look for accuracy that falls more slowly than "
    "the number of training images, and for a method that does well at both ends: a high bar for open images "
    "is worth little if accuracy in the tail is low.",
    needs="test images; open images for the right end",
    draw=draw,
    choose=panels,
)
