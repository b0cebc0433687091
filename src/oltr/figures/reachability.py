"""How far images of the shot groups and open images lie from the memory."""

from __future__ import annotations

from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, with_memory
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.scores import score_histogram, score_histogram_figure
from oltr.runs.explain.score_place import values_by_group


def draw(runs: Runs) -> Figure:
    """Of runs that all have a memory."""
    if not runs:
        raise UserError("None of these runs has a memory.", try_this="a run of the method oltr")
    score = "reachability"
    return score_histogram_figure(
        {run.name: score_histogram(values_by_group(run, score), score) for run in runs}
    )


FIGURE = RunFigure(
    order=130,
    name="reachability",
    title="Reachability: distance to the nearest centroid",
    paper=BEYOND,
    caption="Histogram of the reachability γ for each shot group and for open images. Look for open images "
    "that are farther away than few-shot ones: where they overlap, γ cannot separate rare from unknown.",
    needs="a method with a memory",
    draw=draw,
    choose=with_memory,
)
