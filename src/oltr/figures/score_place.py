"""Where one image's score lies among those of the shot groups and of the open images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from oltr.figures.reachability import ScoreHistogram, score_histogram
from oltr.figures.style import OPEN_COLOUR, SERIES, SHOT_COLOURS, clean
from oltr.figures.values import score_name, score_values
from oltr.metrics.shots import GROUPS, shot_groups
from oltr.openset import Score
from oltr.runs.outputs import Outputs


@dataclass(frozen=True, eq=False)
class ScorePlace:
    """The scores of the test and open images, and the one that is asked about."""

    histogram: ScoreHistogram
    less_familiar: dict[str, float]  # group → share of its images that are further on the unknown side
    value: float
    threshold: float


def score_place(
    outputs: Mapping[str, Outputs],
    train_counts: Sequence[int] | np.ndarray,
    score: Score,
    value: float,
    threshold: float,
    *,
    shots: str = "standard",
    read: Mapping[str, Outputs] | None = None,
) -> ScorePlace:
    """From the outputs on `test` and, if there are any, on `open`; `read` as in `evaluate`."""
    histogram = score_histogram(outputs, train_counts, score, bins=30, shots=shots, read=read)
    further = score.is_unknown(score_values(outputs, "test", score, read), value).numpy()
    groups = shot_groups(train_counts, shots)[outputs["test"].labels.numpy()]
    shares = {kind: float(further[groups == kind].mean()) for kind in GROUPS if (groups == kind).any()}
    if "open" in histogram.counts:
        beyond = score.is_unknown(score_values(outputs, "open", score, read), value)
        shares["open"] = float(beyond.double().mean())
    return ScorePlace(histogram, shares, value, threshold)


def draw_score_place(axes: Axes, place: ScorePlace) -> None:
    """Outlines of the groups' histograms, a line for the threshold and one for the image."""
    run = place.histogram
    for kind, counts in run.counts.items():
        colour = SHOT_COLOURS.get(kind, OPEN_COLOUR)
        name = kind if kind == "open" else f"{kind}-shot"
        axes.stairs(100 * counts / counts.sum(), run.edges, color=colour, linewidth=1.3, label=name)
    axes.axvline(place.threshold, color="0.35", linewidth=1.2, linestyle="--", label="threshold")
    axes.axvline(place.value, color=SERIES[1], linewidth=2.2, label="this image")
    ends = (run.edges[0], run.edges[-1], place.value, place.threshold)
    room = 0.03 * (max(ends) - min(ends))
    axes.set_xlim(min(ends) - room, max(ends) + room)
    axes.margins(y=0.1)
    clean(axes, score_name(run.score), "share of the group's images (%)")
    axes.xaxis.label.set_fontsize("small")
    axes.yaxis.label.set_fontsize("small")
    axes.tick_params(labelsize="x-small")
    # Above the axes: inside, a line or a peak would cross it on one image or another.
    axes.legend(
        frameon=False,
        fontsize="x-small",
        ncols=3,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        title=None if "open" in run.counts else "there are no open images to compare with",
        title_fontsize="x-small",
    )
