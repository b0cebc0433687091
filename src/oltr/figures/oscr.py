"""Known images named rightly against open images let through, as the threshold loosens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from oltr.figures.choose_runs import Runs, with_open
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import clean, run_axes
from oltr.figures.values import right_answers, unknown_values
from oltr.metrics.detection import oscr


@dataclass(frozen=True)
class OscrCurve:
    """A point for each of the U distinct scores, after one at (0, 0) where nothing is accepted."""

    false_positive_rate: np.ndarray  # U+1 float64, the share of open images accepted
    correct_rate: np.ndarray  # U+1 float64, the share of known images both accepted and named rightly
    area: float  # under straight lines from point to point, as `oltr.metrics.detection.oscr`


def oscr_curve(known: np.ndarray, unseen: np.ndarray, right: np.ndarray) -> OscrCurve:
    """CCR(t) against FPR(t) over thresholds t, from accepting no image to accepting all.

    `known` and `unseen` are unknown scores of N known and M open images, higher is more unknown; `right` says
    which of the known are named rightly, N bool.
    """
    steps = np.unique(np.concatenate([known, unseen]))
    named = np.searchsorted(np.sort(known[right]), steps, side="right")
    mistaken = np.searchsorted(np.sort(unseen), steps, side="right")
    return OscrCurve(
        np.insert(mistaken / len(unseen), 0, 0.0),
        np.insert(named / len(known), 0, 0.0),
        oscr(*map(torch.from_numpy, (known, unseen, right))),
    )


def oscr_figure(runs: Mapping[str, OscrCurve]) -> Figure:
    """A line for each run, with the area under it; the right end is the accuracy with nothing rejected."""
    figure, axes = run_axes(runs)
    for name, run in short_names(runs).items():
        label = f"{name}: area {100 * run.area:.1f} %"
        axes.plot(100 * run.false_positive_rate, 100 * run.correct_rate, label=label)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    clean(
        axes,
        "false positive rate: open images accepted (%)",
        "correct classification rate:\nknown images accepted and correct (%)",
    )
    legend_below(figure, axes.lines)
    return figure


def draw(runs: Runs) -> Figure:
    return oscr_figure(
        {
            run.name: oscr_curve(unknown_values(run, "test"), unknown_values(run, "open"), right_answers(run))
            for run in runs
        }
    )


FIGURE = RunFigure(
    order=150,
    name="oscr",
    title="OSCR curve: correct classification rate against false positive rate",
    paper=BEYOND,
    caption="Open-set classification rate (OSCR) over all thresholds. Look at the left end: how many known "
    "images are still classified correctly when few open ones are accepted. Higher is better.",
    needs="open images",
    draw=draw,
    choose=with_open,
)
