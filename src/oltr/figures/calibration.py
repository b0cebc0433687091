"""Whether a network that is sure to 80 % is right 80 times in 100: reliability and calibration error."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from oltr.figures.choose_runs import Runs
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import clean, run_axes
from oltr.figures.values import right_answers
from oltr.metrics.calibration import Calibration, calibration
from oltr.runs.explain.score_place import finite_values


def calibration_figure(runs: Mapping[str, Calibration]) -> Figure:
    """A point for each bin; below the diagonal the network is surer than it is right."""
    figure, axes = run_axes(runs, 5.2, 5.2)
    axes.axline((0, 0), slope=1, color="0.6", linewidth=1)
    for name, run in short_names(runs).items():
        label = f"{name}: ECE {100 * run.error:.1f} %"
        axes.plot(100 * run.confidence, 100 * run.accuracy, marker="o", markersize=4, label=label)
    axes.set_xlim(0, 101)
    axes.set_ylim(0, 101)
    axes.set_aspect("equal")
    clean(axes, "confidence: mean maximum probability of a bin (%)", "accuracy on known test images (%)")
    legend_below(figure, axes.lines[1:])  # without the diagonal
    return figure


def draw(runs: Runs) -> Figure:
    return calibration_figure(
        {run.name: calibration(finite_values(run, "test", "softmax"), right_answers(run)) for run in runs}
    )


FIGURE = RunFigure(
    order=170,
    name="calibration",
    title="Reliability diagram (calibration)",
    paper=BEYOND,
    caption="Accuracy against confidence of known images, in bins from low to high confidence; ECE is the "
    "expected calibration error. Below the diagonal the network is overconfident; above it, it is "
    "underconfident.",
    needs="test images",
    draw=draw,
)
