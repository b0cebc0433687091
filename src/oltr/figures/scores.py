"""Values of a score for the images of each shot group and for open images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, panels
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import OPEN_COLOUR, SHOT_COLOURS, THRESHOLD_LINE, clean, new_figure
from oltr.figures.values import score_name, threshold_words
from oltr.metrics.shots import GROUPS
from oltr.openset import SCORES
from oltr.runs.explain.score_place import values_by_group
from oltr.wording import count

STRAYS = 0.005  # share of a group on either side that may lie beyond the bins: a few strays squash the rest


@dataclass(frozen=True)
class ScoreHistogram:
    """Images per bin of a score's values for each group that has images: many, medium, few, open."""

    score: str
    edges: np.ndarray  # B+1 float64, rising; images beyond the ends count in the first and last bin
    counts: dict[str, np.ndarray]  # group → B int64
    medians: dict[str, float]  # group → median value
    threshold: float | None = None  # beyond which an image is called unknown; None: it is not drawn


def score_histogram(
    groups: Mapping[str, np.ndarray], score: str, threshold: float | None = None, bins: int = 40
) -> ScoreHistogram:
    """Of the values of each group (many, medium, few, open → n float64), over B bins that they share."""
    low = min(np.quantile(values, STRAYS) for values in groups.values())
    high = max(np.quantile(values, 1 - STRAYS) for values in groups.values())
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # all the same, up to rounding
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    counts = {kind: np.histogram(values.clip(low, high), edges)[0] for kind, values in groups.items()}
    medians = {kind: float(np.median(values)) for kind, values in groups.items()}
    return ScoreHistogram(score, edges, counts, medians, threshold)


def score_histogram_figure(runs: Mapping[str, ScoreHistogram]) -> Figure:
    """A column for each run, a row for each group, the share of the group's images in each bin."""
    if not runs:
        raise UserError("There are no runs to draw.")
    kinds = [kind for kind in (*GROUPS, "open") if any(kind in run.counts for run in runs.values())]
    figure = new_figure(max(6.0, 3.4 * len(runs)), 1.0 + 1.15 * len(kinds))
    grid = figure.subplots(len(kinds), len(runs), sharex="col", sharey="row", squeeze=False)
    for column, (name, run) in enumerate(short_names(runs, 34).items()):
        for row, kind in enumerate(kinds):
            axes = grid[row, column]
            clean(axes, "", "", _title(name, run) if row == 0 else "")
            if kind in run.counts:
                _draw(axes, run, kind)
            else:
                axes.text(0.5, 0.4, f"no {kind} images", transform=axes.transAxes, ha="center", color="0.5")
            if run.threshold is not None:
                axes.axvline(run.threshold, **THRESHOLD_LINE)
        title = score_name(run.score)
        if len(runs) > 1:  # in two lines, or neighbours would overlap
            grid[-1, column].set_xlabel(title.replace(" (", "\n("), fontsize="small")
        else:
            grid[-1, column].set_xlabel(title)
    figure.supylabel("share of the group's images in each bin (%)", fontsize="medium")
    marks = [Line2D([], [], color="black", linewidth=1.2, label="median of the group")]
    if any(run.threshold is not None for run in runs.values()):
        marks.append(Line2D([], [], label="threshold of the run", **THRESHOLD_LINE))
    legend_below(figure, marks)
    return figure


def _title(name: str, run: ScoreHistogram) -> str:
    if run.threshold is None:
        return name
    side = "below" if SCORES[run.score].higher_is_known else "above"
    return f"{name}\n{threshold_words([run.threshold])}, unknown {side} it"


def _draw(axes: Axes, run: ScoreHistogram, kind: str) -> None:
    colour = SHOT_COLOURS.get(kind, OPEN_COLOUR)
    images = int(run.counts[kind].sum())
    axes.stairs(100 * run.counts[kind] / images, run.edges, fill=True, color=colour, alpha=0.75)
    axes.margins(y=0.65)  # room above the bars for the words
    axes.axvline(run.medians[kind], color="black", linewidth=1.2)
    title = kind if kind == "open" else f"{kind}-shot"
    label = f"{title}: {count(images, 'image')}\nmedian {run.medians[kind]:.3g}"
    ends = run.edges if run.threshold is None else np.append(run.edges, run.threshold)
    low, high, room = ends.min(), ends.max(), 0.03 * np.ptp(ends)
    axes.set_xlim(low - room, high + room)
    left = run.medians[kind] > (low + high) / 2  # the words go where the images are not
    axes.text(
        0.02 if left else 0.98,
        0.93,
        label,
        transform=axes.transAxes,
        ha="left" if left else "right",
        va="top",
        fontsize="small",
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1},  # a threshold may run behind
    )


def draw(runs: Runs) -> Figure:
    return score_histogram_figure(
        {run.name: score_histogram(values_by_group(run), run.rule.score, run.rule.threshold) for run in runs}
    )


FIGURE = RunFigure(
    order=140,
    name="scores",
    title="Histogram of the unknown score (out-of-distribution score)",
    paper=BEYOND,
    caption="Values of the score for each shot group and for open images, with the run's threshold. Look at "
    "the overlap of few-shot and open images: no threshold separates what overlaps.",
    needs="test images",
    draw=draw,
    choose=panels,
)
