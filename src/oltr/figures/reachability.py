"""How far images of the shot groups and open images lie from the memory, or the values of any other score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oltr.errors import UserError
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import OPEN_COLOUR, SHOT_COLOURS, THRESHOLD_LINE, clean, new_figure
from oltr.figures.values import score_name, score_values, threshold_words
from oltr.metrics.shots import GROUPS, shot_groups
from oltr.openset import SCORES, Score
from oltr.runs.outputs import Outputs
from oltr.wording import count

BEYOND = 0.005  # share of a group on either side that may lie beyond the bins: a few strays squash the rest


@dataclass(frozen=True)
class ScoreHistogram:
    """Images per bin of a score's values for each group that has images: many, medium, few, open."""

    score: Score
    edges: np.ndarray  # B+1 float64, rising; images beyond the ends count in the first and last bin
    counts: dict[str, np.ndarray]  # group → B int64
    medians: dict[str, float]  # group → median value
    threshold: float | None = None  # beyond which an image is called unknown; None: not told


def score_histogram(
    outputs: Mapping[str, Outputs],
    train_counts: Sequence[int] | np.ndarray,
    score: str | Score = "reachability",
    *,
    bins: int = 40,
    shots: str = "standard",
    threshold: float | None = None,
    read: Mapping[str, Outputs] | None = None,
) -> ScoreHistogram:
    """Test images by shot group, and open images if there are any, over B bins that they share."""
    chosen = SCORES[score] if isinstance(score, str) else score
    splits = ["test", "open"] if "open" in outputs and len(outputs["open"]) else ["test"]
    values = torch.cat([score_values(outputs, split, chosen, read) for split in splits]).numpy()
    labels = torch.cat([outputs[split].labels for split in splits]).numpy()
    if (classes := outputs["test"].logits.shape[1]) != len(train_counts):
        raise UserError(f"The outputs have {classes} classes, but there are {len(train_counts)} counts.")
    kinds = np.append(shot_groups(train_counts, shots), "open")[labels]  # label -1 takes the last
    groups = {kind: values[kinds == kind] for kind in (*GROUPS, "open") if (kinds == kind).any()}
    low = min(np.quantile(group, BEYOND) for group in groups.values())
    high = max(np.quantile(group, 1 - BEYOND) for group in groups.values())
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # all the same, up to rounding
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    counts = {kind: np.histogram(group.clip(low, high), edges)[0] for kind, group in groups.items()}
    medians = {kind: float(np.median(group)) for kind, group in groups.items()}
    return ScoreHistogram(chosen, edges, counts, medians, threshold)


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
    side = "below" if run.score.higher_is_known else "above"
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
