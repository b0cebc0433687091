"""Accuracy against labels spent, week by week, for several ways of choosing what to label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.style import SERIES, clean, new_figure


@dataclass(frozen=True, eq=False)
class LoopCurve:
    """One strategy under N seeds after each of W weeks."""

    label: str
    labels: np.ndarray  # N×W, spent so far
    accuracy: np.ndarray  # N×W, in fractions


def loop_figure(curves: Sequence[LoopCurve]) -> Figure:
    """Left against the labels spent, right against the weeks; a band of one deviation between seeds."""
    if not curves:
        raise UserError("There are no curves to draw.")
    figure = new_figure(9.0, 3.8)
    spent, weekly = figure.subplots(1, 2, sharey=True)
    for colour, curve in zip(SERIES, curves, strict=False):
        mean, deviation = 100 * curve.accuracy.mean(axis=0), 100 * curve.accuracy.std(axis=0)
        weeks = np.arange(1, len(mean) + 1)
        for axes, at in ((spent, curve.labels.mean(axis=0)), (weekly, weeks)):
            axes.plot(at, mean, color=colour, marker="o", markersize=3.5, label=curve.label)
            axes.fill_between(at, mean - deviation, mean + deviation, color=colour, alpha=0.12, linewidth=0)
    seeds = len(curves[0].accuracy)
    clean(spent, "number of labels", "accuracy, mean over classes seen (%)")
    clean(weekly, "week", "")
    spent.legend(frameon=False, fontsize="small", loc="lower right")
    if seeds > 1:
        weekly.set_title(f"mean ± deviation of {seeds} seeds", loc="right", fontsize="small", color="0.4")
    return figure


FIGURE = RunFigure(
    order=200,
    name="loop",
    title="Active learning: accuracy against number of labels",
    paper=BEYOND,
    caption="Images arrive in weekly batches, new classes among them; some are labelled each week.",
    needs="test and open images with class names",
    draw=None,
    made_by="oltr loop RUN --out DIR",
)
