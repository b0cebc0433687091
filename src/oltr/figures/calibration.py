"""Whether a network that is sure to 80 % is right 80 times in 100: reliability and calibration error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import clean, run_axes
from oltr.figures.values import right_answers
from oltr.runs.explain.score_place import finite_values


@dataclass(frozen=True)
class Calibration:
    """Bins of about equally many known test images, from the least sure to the surest; B or fewer of them."""

    images: np.ndarray  # B int64, in each bin
    confidence: np.ndarray  # B float64, mean largest softmax probability
    accuracy: np.ndarray  # B float64, share named rightly
    error: float  # ECE = Σ_b images_b / N · |accuracy_b − confidence_b|


def calibration(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> Calibration:
    """In bins of equal mass: bin b of B holds the images of rank ⌈b N / B⌉ up to the next.

    `confidence` is the largest softmax probability of N images, `right` says which are named rightly.
    Images of equal confidence share a bin, whatever their order; a bin that is empty for that is left out.
    """
    if bins < 1:
        raise UserError(f"There must be at least one bin; got {bins}.")
    ranks = -(-np.arange(1, bins) * len(right) // bins)
    borders = np.sort(confidence)[ranks[ranks < len(right)]]
    place = np.searchsorted(borders, confidence, side="right")
    images, sure, named = (np.bincount(place, weights=of) for of in (np.ones(len(right)), confidence, right))
    filled = images > 0
    images, sure, named = images[filled], sure[filled], named[filled]
    error = float(np.abs(named - sure).sum() / len(right))
    return Calibration(images.astype(np.int64), sure / images, named / images, error)


def calibration_figure(runs: Mapping[str, Calibration]) -> Figure:
    """A point for each bin; below the diagonal the network is surer than it is right."""
    figure, axes = run_axes(runs, 5.2, 5.2)
    axes.axline((0, 0), slope=1, color="0.6", linewidth=1)
    for name, run in short_names(runs).items():
        label = f"{name}: error {100 * run.error:.1f} %"
        axes.plot(100 * run.confidence, 100 * run.accuracy, marker="o", markersize=4, label=label)
    axes.set_xlim(0, 101)
    axes.set_ylim(0, 101)
    axes.set_aspect("equal")
    clean(axes, "confidence: mean largest probability of a bin (%)", "known test images named rightly (%)")
    legend_below(figure, axes.lines[1:])  # without the diagonal
    return figure


def draw(runs: Runs) -> Figure:
    return calibration_figure(
        {run.name: calibration(finite_values(run, "test", "softmax"), right_answers(run)) for run in runs}
    )


FIGURE = RunFigure(
    order=170,
    name="calibration",
    title="Confidence against accuracy",
    paper=BEYOND,
    caption="Bins of known images from the least sure to the surest. Below the diagonal the network is "
    "surer than it is right; above it, it is too modest.",
    needs="test images",
    draw=draw,
)
