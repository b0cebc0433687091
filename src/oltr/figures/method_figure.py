"""The boxes of a network as a picture, from the image to the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from oltr.figures.choose_runs import Runs, best_first, first_that_can, has_meta_embedding
from oltr.figures.figure import RunFigure
from oltr.figures.method_schema import Box, MethodSchema, method_schema
from oltr.figures.style import SERIES, SHOT_COLOURS
from oltr.runs.trained_run import TrainedRun

WIDE, TALL, ACROSS, DOWN = 1.48, 0.82, 2.18, 1.26  # inches: a box, and from one to the next
RIGHT = 4 * ACROSS - (ACROSS - WIDE)  # where the last column ends
HEAD = 0.55  # room for a title of two lines
SEEN, MADE, REMEMBERED = SERIES[0], SERIES[2], SHOT_COLOURS["medium"]  # colours of image, answer and memory
INK, PALE = "0.15", "0.6"

# name: column and row of its upper left corner, its width in columns, its colour. Between hallucinator and
# reachability the memory reaches both.
PLACES: dict[str, tuple[int, int, int, str]] = {
    "images": (0, 0, 1, INK),
    "backbone": (1, 0, 1, SEEN),
    "attention": (2, 0, 1, SEEN),
    "direct_feature": (3, 0, 1, SEEN),
    "selector": (0, 1, 1, REMEMBERED),
    "hallucinator": (1, 1, 1, REMEMBERED),
    "memory": (2, 1, 1, REMEMBERED),
    "reachability": (3, 1, 1, REMEMBERED),
    "meta_embedding": (0, 2, 4, MADE),
    "classifier": (3, 3, 1, MADE),
}


def method_figure(schema: MethodSchema) -> Figure:
    """Boxes that the network has not are pale and dashed, and say so."""
    # The axes fill the figure, in inches: text stays inside its box at every size.
    width, height = RIGHT + 0.8, 3 * DOWN + TALL + HEAD + 0.1
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.1, width - 0.1), ylim=(height - HEAD, -HEAD), aspect="equal")
    axes.axis("off")
    figure.suptitle(f"{schema.method}, {_number(schema.parameters)}", fontsize="medium")
    _connect(axes, schema)
    for name, box in schema.boxes.items():
        _draw(axes, box, *PLACES[name])
    answer = Box("prediction", f"one of {schema.boxes['classifier'].shape} classes, or unknown", "", 0)
    _draw(axes, answer, 2, 3, 1, INK)
    return figure


def _connect(axes: Axes, schema: MethodSchema) -> None:
    boxes, half = schema.boxes, TALL / 2
    for column, name in enumerate(("images", "backbone", "attention")):
        start = column * ACROSS + WIDE
        _arrow(axes, [(start, half), (start + ACROSS - WIDE, half)], boxes[name].shape, above=True)
    direct, rail = f"v_direct\n{boxes['direct_feature'].shape}", DOWN - 0.24
    readers = {name: PLACES[name][0] for name in ("selector", "hallucinator", "reachability")}
    for name, column in readers.items():  # all read the direct feature, along one rail
        x = column * ACROSS + WIDE / 2
        source = [(3 * ACROSS + WIDE / 2, TALL), (3 * ACROSS + WIDE / 2, rail), (x, rail), (x, DOWN)]
        _arrow(axes, source, there=not boxes[name].absent)
    level, below = DOWN + half, DOWN + TALL
    remembers = not boxes["memory"].absent
    for name, end in (("hallucinator", ACROSS + WIDE), ("reachability", 3 * ACROSS)):
        start = 2 * ACROSS if end < 2 * ACROSS else 2 * ACROSS + WIDE
        there = remembers and not boxes[name].absent
        _arrow(axes, [(start, level), (end, level)], boxes["memory"].shape, above=True, there=there)
    for name, sign in (("selector", "e"), ("hallucinator", "v_memory"), ("reachability", "γ")):
        x, box = PLACES[name][0] * ACROSS + WIDE / 2, boxes[name]
        _arrow(axes, [(x, below), (x, 2 * DOWN)], f"{sign}  {box.shape}", there=not box.absent)
    meta, trunk = boxes["meta_embedding"], RIGHT + 0.14
    to = 3 * DOWN + half if meta.absent else 2 * DOWN + half
    _arrow(axes, [(RIGHT, half), (trunk, half), (trunk, to), (RIGHT, to)], direct)
    x = 3 * ACROSS + WIDE / 2
    _arrow(axes, [(x, 2 * DOWN + TALL), (x, 3 * DOWN)], f"v_meta  {meta.shape}", there=not meta.absent)
    shape, left = boxes["classifier"].shape, 2 * ACROSS + WIDE
    _arrow(axes, [(3 * ACROSS, 3 * DOWN + half), (left, 3 * DOWN + half)], shape, above=True)


def _arrow(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    label: str = "",
    above: bool = False,
    there: bool = True,
) -> None:
    """Along the points; its label above the middle of a straight one, else beside the longest way down."""
    colour = INK if there else "0.8"
    order = 2 if there else 1
    style = "-" if there else (0, (3, 2))
    *way, last, end = points
    axes.plot(*zip(*way, last, end, strict=True), color=colour, linewidth=1, linestyle=style, zorder=order)
    axes.annotate(
        "", end, last, zorder=order,
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 0, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    if label and there:
        how: dict[str, Any]
        if above:
            x, y, how = (points[0][0] + end[0]) / 2, end[1] - 0.06, {"ha": "center", "va": "bottom"}
        else:
            (x, y0), (_, y1) = max(pairwise(points), key=lambda pair: abs(pair[1][1] - pair[0][1]))
            x, y, how = x + 0.06, (y0 + y1) / 2, {"ha": "left", "va": "center"}
        axes.text(x, y, label, fontsize=6.5, color=INK, parse_math=False, **how)


def _draw(axes: Axes, box: Box, column: int, row: int, columns: int, colour: str) -> None:
    x, y, wide = column * ACROSS, row * DOWN, (columns - 1) * ACROSS + WIDE
    there = not box.absent
    shape = FancyBboxPatch(
        (x, y), wide, TALL,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=(colour, 0.14) if there and colour != INK else "white",
        edgecolor=colour if there else "0.75",
        linestyle="-" if there else (0, (4, 3)),
        linewidth=1.2,
        zorder=3,
    )  # fmt: skip
    axes.add_patch(shape)
    note = [part for line in box.note.split("\n") for part in textwrap.wrap(line, 26 * columns)][:2]
    learned = [_number(box.parameters)] if there and box.parameters else []
    lines = [*note, *learned] if there else [box.absent]
    middle, ink = x + wide / 2, INK if there else PALE
    top = y + TALL / 2 - 0.065 * len(lines)
    words: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False, "zorder": 4}
    axes.text(middle, top, box.title, fontsize=8.2, weight="bold", color=ink, **words)
    for number, line in enumerate(lines):
        axes.text(middle, top + 0.17 + 0.145 * number, line, fontsize=6.8, color=ink, **words)


def _number(parameters: int) -> str:
    """So many parameters, in words.

    >>> _number(4_904_192), _number(25_700), _number(1)
    ('4.90 million parameters', '25,700 parameters', '1 parameter')
    """
    if parameters >= 1_000_000:
        return f"{parameters / 1e6:.2f} million parameters"
    return f"{parameters:,} parameter{'s' * (parameters != 1)}"


def of_run(run: TrainedRun) -> Figure:
    """The boxes of the run's network; no images are needed."""
    config = run.config
    size = config.data.seen_size
    return method_figure(method_schema(run.trained_network, config.method, config.backbone, size))


def draw(runs: Runs) -> Figure:
    # The best that has most of the paper's parts: of a network without them there is little to see.
    return first_that_can(sorted(best_first(runs), key=has_meta_embedding, reverse=True), of_run)


FIGURE = RunFigure(
    order=10,
    name="method",
    title="Network architecture",
    paper="Fig. 2",
    caption="The modules of the network from image to prediction, with the output shape and the number of "
    "parameters of each. Pale boxes are parts of the paper's method that this network does not have. Look at "
    "how few parameters the memory adds to the backbone.",
    needs="the run's weights",
    draw=draw,
)
