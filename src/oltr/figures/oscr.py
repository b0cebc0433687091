"""Known images named rightly against open images let through, as the threshold loosens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import clean, run_axes
from oltr.figures.values import right_answers, score_values
from oltr.metrics.detection import oscr
from oltr.openset import SCORES, Score
from oltr.runs.outputs import Outputs


@dataclass(frozen=True)
class OscrCurve:
    """A point for each of the U distinct scores, after one at (0, 0) where nothing is accepted."""

    false_positive_rate: np.ndarray  # U+1 float64, the share of open images accepted
    correct_rate: np.ndarray  # U+1 float64, the share of known images both accepted and named rightly
    area: float  # under straight lines from point to point, as `oltr.metrics.detection.oscr`


def oscr_curve(
    outputs: Mapping[str, Outputs],
    score: str | Score = "softmax",
    *,
    read: Mapping[str, Outputs] | None = None,
) -> OscrCurve:
    """CCR(t) against FPR(t) over thresholds t, from accepting no image to accepting all."""
    chosen = SCORES[score] if isinstance(score, str) else score
    right = right_answers(outputs)
    sign = -1 if chosen.higher_is_known else 1
    known, unseen = (sign * score_values(outputs, split, chosen, read) for split in ("test", "open"))
    steps = torch.cat([known, unseen]).unique()
    named = torch.searchsorted(known[torch.from_numpy(right)].sort().values, steps, right=True)
    mistaken = torch.searchsorted(unseen.sort().values, steps, right=True)
    return OscrCurve(
        np.insert(mistaken.numpy() / len(unseen), 0, 0.0),
        np.insert(named.numpy() / len(known), 0, 0.0),
        oscr(known, unseen, torch.from_numpy(right)),
    )


def oscr_figure(runs: Mapping[str, OscrCurve]) -> Figure:
    """A line for each run, with the area under it; the right end is the accuracy with nothing rejected."""
    figure, axes = run_axes(runs)
    for name, run in short_names(runs).items():
        label = f"{name}: area {100 * run.area:.1f} %"
        axes.plot(100 * run.false_positive_rate, 100 * run.correct_rate, label=label)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    clean(axes, "open images accepted (%)", "known images accepted and named rightly (%)")
    legend_below(figure, axes.lines)
    return figure
