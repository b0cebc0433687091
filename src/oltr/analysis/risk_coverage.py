"""Risk against coverage: how often a network is wrong on the images of which it is surest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oltr.analysis.reachability import score_values
from oltr.analysis.style import SERIES, clean, new_figure
from oltr.errors import UserError
from oltr.evaluation.outputs import OPEN, Outputs
from oltr.openset import SCORES, Score

RUN_STYLES = cycler(linestyle=("-", "--", ":")) * cycler(color=SERIES)  # 18 runs before any two look alike


@dataclass(frozen=True)
class RiskCoverage:
    """A point for each of the U distinct scores, the most familiar first; equal scores enter together."""

    coverage: np.ndarray  # U float64, the share of the known test images that are accepted, rising to 1
    risk: np.ndarray  # U float64, the share of those accepted that are named wrongly
    area: float  # Σ (coverage_i − coverage_{i−1}) · risk_i; smaller is better


def right_answers(outputs: Mapping[str, Outputs]) -> np.ndarray:
    """Whether the largest logit of each test image is that of its class, N bool."""
    if "test" not in outputs or len(outputs["test"]) == 0:
        raise UserError("There are no test images.", try_this="data with images in the split test")
    test = outputs["test"]
    if (test.labels == OPEN).any():
        raise UserError("Some test images have no known class.", "Open images belong to the open split.")
    if not test.logits.isfinite().all():
        raise UserError(
            "The outputs of test hold NaN or infinite values.",
            "The training of this network probably went astray.",
        )
    return (test.logits.argmax(dim=1) == test.labels).numpy()


def run_axes(runs: Mapping[str, Any], width: float = 6.0, height: float = 4.2) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, on which every next line looks like another run."""
    if not runs:
        raise UserError("There are no runs to draw.")
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.set_prop_cycle(RUN_STYLES)
    return figure, axes


def risk_coverage(
    outputs: Mapping[str, Outputs],
    score: str | Score = "softmax",
    *,
    read: Mapping[str, Outputs] | None = None,
) -> RiskCoverage:
    """coverage(t) = accepted / N, risk(t) = accepted and wrong / accepted, over the N known test images."""
    chosen = SCORES[score] if isinstance(score, str) else score
    right = right_answers(outputs)
    values = score_values(outputs, "test", chosen, read).numpy()
    _, place = np.unique(-values if chosen.higher_is_known else values, return_inverse=True)
    images = np.bincount(place)
    accepted = images.cumsum()
    risk = np.bincount(place, weights=~right).cumsum() / accepted
    return RiskCoverage(accepted / len(right), risk, float((images * risk).sum() / len(right)))


def risk_coverage_figure(runs: Mapping[str, RiskCoverage]) -> Figure:
    """A line for each run, with its area; the right end is the error when every image is accepted."""
    figure, axes = run_axes(runs)
    for name, run in runs.items():
        # Steps from the left: a coverage between two points is reached by accepting the next images whole.
        x, y = np.insert(run.coverage, 0, 0.0), np.insert(run.risk, 0, run.risk[0])
        axes.plot(100 * x, 100 * y, drawstyle="steps-pre", label=f"{name}: area {100 * run.area:.1f} %")
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0)
    clean(axes, "coverage: known test images accepted (%)", "risk: accepted images named wrongly (%)")
    figure.legend(frameon=False, loc="outside lower center", ncols=min(3, len(runs)), fontsize="small")
    return figure
