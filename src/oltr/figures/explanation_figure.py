"""One picture of why a network names an image as it does."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure

from oltr.figures.attention_overlay import draw_attention
from oltr.figures.infused_concepts import draw_concepts
from oltr.figures.run_names import shortened
from oltr.figures.score_place import draw_score_place
from oltr.figures.style import SHOT_COLOURS, clean, new_figure, show_picture, without
from oltr.runs.explain.explanation import Candidate, Explanation, Missing, Nearest

WIDTH, VERDICT, ABSENT = 9.2, 3.3, 0.55  # inches: the page, its first row, the words for a missing part
HEIGHTS = {"nearest": 2.35, "concepts": 3.0, "attention": 2.85}
TITLES = {"nearest": "Nearest classes", "concepts": "Concepts from the memory", "attention": "Attention"}


def explanation_figure(told: Explanation) -> Figure:
    """Verdict and scores, nearest classes, infused concepts, attention: from top to bottom."""
    missing = {name: isinstance(getattr(told, name), Missing) for name in HEIGHTS}
    heights = [VERDICT, *(ABSENT if missing[name] else height for name, height in HEIGHTS.items())]
    figure = new_figure(WIDTH, sum(heights) + 0.2)
    rows = figure.subfigures(len(heights), squeeze=False, height_ratios=heights)[:, 0]
    _draw_verdict(rows[0], told)
    for row, name in zip(rows[1:], HEIGHTS, strict=True):
        value = getattr(told, name)
        if isinstance(value, Missing):
            _draw_missing(row, TITLES[name], value.why)
        elif name == "nearest":
            _draw_nearest(row, value)
        else:
            draw = draw_concepts if name == "concepts" else draw_attention
            draw(row, told.picture[None], value, ["what the network sees"])
    return figure


def _draw_verdict(place: SubFigure, told: Explanation) -> None:
    first = told.candidates[0]
    named = f"unknown (likeliest: {first.name})" if told.verdict.unknown else first.name
    head = f"{shortened(Path(told.image).name)} ({told.method}): {shortened(named, 60)}"
    place.suptitle(f"{head}\n{told.verdict.reason()}", fontsize="medium", parse_math=False)
    axes = place.subplots(1, 3, width_ratios=(1, 0.8, 1.5))
    show_picture(axes[0], told.picture, "what the network sees")
    _draw_candidates(axes[1], told.candidates)
    if isinstance(told.place, Missing):
        without(axes[2], textwrap.fill(f"No scores to compare with: {told.place.why}", 42))
    else:
        draw_score_place(axes[2], told.place)


def _draw_candidates(axes: Axes, candidates: Sequence[Candidate]) -> None:
    """A bar for each class, in the colour of its shot group; its name above it, however long."""
    for row, candidate in enumerate(candidates):
        axes.barh(row, 100 * candidate.probability, 0.36, color=SHOT_COLOURS[candidate.shots])
        percent = 100 * candidate.probability
        words = f"{shortened(candidate.name, 24)} ({candidate.train_count:,}): {percent:.1f} %"
        axes.text(0, row - 0.25, words, fontsize="x-small", va="bottom", parse_math=False)
    axes.set_ylim(len(candidates) - 0.5, -0.75)
    axes.set_yticks([])
    axes.set_xlim(0, 100)
    clean(axes, "probability (%)", "class (training images)")
    axes.xaxis.label.set_fontsize("small")
    axes.tick_params(labelsize="x-small")
    axes.yaxis.label.set_fontsize("small")
    axes.spines["left"].set_visible(False)


def _draw_nearest(place: FigureBase, nearest: Nearest) -> None:
    place.suptitle(f"Nearest {nearest.found.of}, with a training image of each class", fontsize="medium")
    grid = place.subplots(1, len(nearest.names), squeeze=False)[0]
    for number, (axes, name) in enumerate(zip(grid, nearest.names, strict=True)):
        words = f"{shortened(name, 24)}\ndistance {nearest.found.distances[number]:.3g}"
        if isinstance(nearest.examples, Missing):
            without(axes, "no example")
        else:
            show_picture(axes, nearest.examples[number])
        axes.set_xlabel(words, fontsize="x-small", parse_math=False)
    if isinstance(nearest.examples, Missing):
        place.suptitle(
            textwrap.fill(f"Nearest {nearest.found.of}. No examples: {nearest.examples.why}", 100),
            fontsize="medium",
            parse_math=False,
        )


def _draw_missing(place: FigureBase, title: str, why: str) -> None:
    axes = place.subplots()
    words = textwrap.fill(f"{title}: {why}", 120)
    axes.text(0, 0.5, words, fontsize="small", va="center", color="0.35", parse_math=False)
    axes.set_axis_off()
