"""Where one image's score lies among those of the shot groups and of the open images."""

from __future__ import annotations

from matplotlib.axes import Axes

from oltr.figures.scores import score_histogram
from oltr.figures.style import OPEN_COLOUR, SERIES, SHOT_COLOURS, clean
from oltr.figures.values import score_name
from oltr.runs.explain.score_place import ScorePlace


def draw_score_place(axes: Axes, place: ScorePlace) -> None:
    """Outlines of the groups' histograms, a line for the threshold and one for the image."""
    run = score_histogram(place.groups, place.score, bins=30)
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
    clean(axes, score_name(place.score), "share of the group's images (%)")
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
