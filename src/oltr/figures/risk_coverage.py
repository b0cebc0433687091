"""Risk against coverage: how often a network is wrong on the images of which it is surest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from oltr.figures.choose_runs import Runs
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import clean, run_axes
from oltr.figures.values import right_answers, unknown_values


@dataclass(frozen=True)
class RiskCoverage:
    """A point for each of the U distinct scores, the most familiar first; equal scores enter together."""

    coverage: np.ndarray  # U float64, the share of the known test images that are accepted, rising to 1
    risk: np.ndarray  # U float64, the share of those accepted that are named wrongly
    area: float  # Σ (coverage_i − coverage_{i−1}) · risk_i; smaller is better


def risk_coverage(unknown: np.ndarray, right: np.ndarray) -> RiskCoverage:
    """coverage(t) = accepted / N, risk(t) = accepted and wrong / accepted, over the N known test images.

    `unknown` is their score, higher is more unknown, and `right` says which are named rightly; N each.
    """
    _, place = np.unique(unknown, return_inverse=True)
    images = np.bincount(place)
    accepted = images.cumsum()
    risk = np.bincount(place, weights=~right).cumsum() / accepted
    return RiskCoverage(accepted / len(right), risk, float((images * risk).sum() / len(right)))


def risk_coverage_figure(runs: Mapping[str, RiskCoverage]) -> Figure:
    """A line for each run, with its area; the right end is the error when every image is accepted."""
    figure, axes = run_axes(runs)
    for name, run in short_names(runs).items():
        # Steps from the left: a coverage between two points is reached by accepting the next images whole.
        x, y = np.insert(run.coverage, 0, 0.0), np.insert(run.risk, 0, run.risk[0])
        axes.plot(100 * x, 100 * y, drawstyle="steps-pre", label=f"{name}: area {100 * run.area:.1f} %")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    clean(axes, "coverage: known test images accepted (%)", "risk: accepted images misclassified (%)")
    legend_below(figure, axes.lines)
    return figure


def draw(runs: Runs) -> Figure:
    return risk_coverage_figure(
        {run.name: risk_coverage(unknown_values(run, "test"), right_answers(run)) for run in runs}
    )


FIGURE = RunFigure(
    order=160,
    name="risk-coverage",
    title="Risk-coverage curve",
    paper=BEYOND,
    caption="Error rate (risk) as more known images are accepted (coverage), the most familiar by the run's "
    "score first. Look for a curve that starts near zero and rises late: then the others can be passed on to "
    "a person.",
    needs="test images",
    draw=draw,
)
