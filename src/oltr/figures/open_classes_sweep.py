"""F-measure against the number of open classes, as in the paper's analysis of their influence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from oltr.errors import UserError
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import clean, keep_slopes_honest, run_axes
from oltr.figures.values import right_answers, score_values, threshold_words
from oltr.metrics.fmeasure import f_from_counts
from oltr.openset import SCORES, Score
from oltr.openset.threshold import settle_threshold
from oltr.runs.outputs import Outputs

SIZES_UP_TO = 40  # numbers of open classes that are tried; more points than that look like a line anyway


@dataclass(frozen=True)
class OpenClassesSweep:
    """The F-measure beside the images of the first s classes of a random order, for each of the draws."""

    threshold: float  # in the score's own units
    sizes: np.ndarray  # S int64, rising
    f_measure: np.ndarray  # draws×S float64, fractions

    @property
    def mean(self) -> np.ndarray:
        """Over the draws, S."""
        return self.f_measure.mean(axis=0)

    @property
    def deviation(self) -> np.ndarray:
        """√(Σ (F − mean)² / (draws − 1)), S; 0 for a single draw."""
        return self.f_measure.std(axis=0, ddof=1) if len(self.f_measure) > 1 else np.zeros(len(self.sizes))


def open_classes_sweep(
    outputs: Mapping[str, Outputs],
    open_classes: Sequence[str],
    score: str | Score = "softmax",
    *,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    sizes: Sequence[int] | None = None,
    draws: int = 20,
    seed: int = 0,
    read: Mapping[str, Outputs] | None = None,
) -> OpenClassesSweep:
    """F = 2 TP / (2 TP + FP + FN), where only FN, the open images given a known name, grows with the classes.

    `open_classes` names the class of each open image. The order of the classes in a draw depends on the seed
    and their names alone, so that runs side by side meet the same open images.
    """
    chosen = SCORES[score] if isinstance(score, str) else score
    right = right_answers(outputs)
    known, unseen = (score_values(outputs, split, chosen, read) for split in ("test", "open"))
    if len(open_classes) != len(unseen):
        raise UserError(
            f"There are {len(unseen)} open images but {len(open_classes)} names of their classes."
        )
    if draws < 1:
        raise UserError(f"There must be at least one draw; got {draws}.")
    line = settle_threshold(chosen, (outputs if read is None else read).get("val"), threshold, unknown_rate)
    names, place = np.unique(np.asarray(open_classes), return_inverse=True)
    if sizes is None:
        sizes = np.linspace(0, len(names), min(len(names), SIZES_UP_TO) + 1).round().astype(int).tolist()
    steps = np.unique(np.asarray(sizes, dtype=np.int64))
    if not len(steps) or steps[0] < 0 or steps[-1] > len(names):
        raise UserError(
            f"The numbers of open classes must lie between 0 and {len(names)}; got {list(sizes)}."
        )
    accepted = np.bincount(place, weights=~chosen.is_unknown(unseen, line).numpy()).astype(np.int64)
    named = int((right & ~chosen.is_unknown(known, line).numpy()).sum())
    generator = np.random.default_rng(seed)
    # draws×S: the open images accepted among the first s classes of each order
    orders = (accepted[generator.permutation(len(names))] for _ in range(draws))
    mistaken = np.stack([np.insert(order.cumsum(), 0, 0)[steps] for order in orders])
    counts = torch.tensor([[named, len(right) - named, count] for count in mistaken.ravel().tolist()])
    f_measure = np.array([f_from_counts(row) for row in counts]).reshape(mistaken.shape)
    return OpenClassesSweep(line, steps, f_measure)


def open_classes_sweep_figure(runs: Mapping[str, OpenClassesSweep]) -> Figure:
    """The mean over the draws as a line for each run, one deviation to either side as a band."""
    figure, axes = run_axes(runs)
    words = threshold_words([run.threshold for run in runs.values()])
    for name, run in short_names(runs).items():
        label = f"{name}: {threshold_words([run.threshold])}" if words.startswith("thresholds") else name
        (line,) = axes.plot(run.sizes, 100 * run.mean, label=label, marker="." if len(run.sizes) < 30 else "")
        low, high = 100 * (run.mean - run.deviation), 100 * (run.mean + run.deviation)
        axes.fill_between(run.sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    draws = {len(run.f_measure) for run in runs.values()}
    spread = f", mean ± deviation of {draws.pop()} draws" if draws != {1} and len(draws) == 1 else ""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    clean(axes, f"number of open classes{spread}", "F-measure (%)", f"at the {words}")
    keep_slopes_honest(axes)
    legend_below(figure, axes.lines)
    return figure
