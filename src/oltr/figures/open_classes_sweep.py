"""F-measure against the number of open classes, as in the paper's analysis of their influence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, with_open
from oltr.figures.figure import RunFigure
from oltr.figures.run_images import own_data
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import clean, keep_slopes_honest, run_axes
from oltr.figures.values import right_answers, threshold_words
from oltr.metrics.fmeasure import f_from_counts
from oltr.runs.explain.score_place import finite_values
from oltr.runs.trained_run import TrainedRun

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
    run: TrainedRun,
    open_classes: Sequence[str],
    *,
    draws: int = 20,
    seed: int = 0,
    sizes: Sequence[int] | None = None,
) -> OpenClassesSweep:
    """F = 2 TP / (2 TP + FP + FN), where only FN, the open images given a known name, grows with the classes.

    `open_classes` names the class of each open image. The order of the classes in a draw depends on the seed
    and their names alone, so that runs side by side meet the same open images.
    """
    known, unseen = _accepted(run, "test"), _accepted(run, "open")
    if len(open_classes) != len(unseen):
        raise UserError(
            f"There are {len(unseen)} open images but {len(open_classes)} names of their classes."
        )
    if draws < 1:
        raise UserError(f"There must be at least one draw; got {draws}.")
    names, place = np.unique(np.asarray(open_classes), return_inverse=True)
    if sizes is None:
        sizes = np.linspace(0, len(names), min(len(names), SIZES_UP_TO) + 1).round().astype(int).tolist()
    steps = np.unique(np.asarray(sizes, dtype=np.int64))
    if not len(steps) or steps[0] < 0 or steps[-1] > len(names):
        raise UserError(
            f"The numbers of open classes must lie between 0 and {len(names)}; got {list(sizes)}."
        )
    accepted = np.bincount(place, weights=unseen).astype(np.int64)
    named = int((right_answers(run) & known).sum())
    generator = np.random.default_rng(seed)
    # draws×S: the open images accepted among the first s classes of each order
    orders = (accepted[generator.permutation(len(names))] for _ in range(draws))
    mistaken = np.stack([np.insert(order.cumsum(), 0, 0)[steps] for order in orders])
    counts = torch.tensor([[named, len(known) - named, count] for count in mistaken.ravel().tolist()])
    f_measure = np.array([f_from_counts(row) for row in counts]).reshape(mistaken.shape)
    return OpenClassesSweep(run.rule.threshold, steps, f_measure)


def _accepted(run: TrainedRun, split: str) -> np.ndarray:
    """Which images of a split the run does not reject, N bool."""
    return ~run.rule.rejects(torch.from_numpy(finite_values(run, split))).numpy()


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


def open_classes(run: TrainedRun) -> list[str]:
    """The class of each open image, which only the run's data know."""
    if run.unseen is None:
        raise UserError("There are no open images.", try_this="data with images in the split open")
    return own_data(run).open_class_names()


def with_open_classes(runs: Runs) -> Runs:
    """Those tested on open images whose data still name their classes; if there are none, those with open."""
    return [run for run in with_open(runs) if _has_open_classes(run)] or with_open(runs)


def _has_open_classes(run: TrainedRun) -> bool:
    try:
        return bool(open_classes(run))
    except UserError:
        return False


def draw(runs: Runs) -> Figure:
    return open_classes_sweep_figure({run.name: open_classes_sweep(run, open_classes(run)) for run in runs})


FIGURE = RunFigure(
    order=120,
    name="open-classes",
    title="Influence of the number of open classes",
    paper="Fig. 8 (c)",
    caption="The F-measure at the run's threshold as more open classes are added, in random order. "
    "Look at the slope: a flat line means that new classes hardly hurt.",
    needs="open images with class names, in the run's data",
    draw=draw,
    choose=with_open_classes,
)
