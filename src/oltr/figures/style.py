"""What all figures share: colours that everyone can tell apart, axes without ornament, single pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.run_names import shortened

# From Okabe and Ito's palette, which colour-blind readers can tell apart.
SHOT_COLOURS = {"many": "#0072B2", "medium": "#E69F00", "few": "#CC79A7"}
OPEN_COLOUR = "#555555"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # runs side by side
RUN_STYLES = cycler(linestyle=("-", "--", ":")) * cycler(color=SERIES)  # 18 runs before any two look alike

THRESHOLD_LINE: dict[str, Any] = {"color": SERIES[1], "linewidth": 1.4, "linestyle": "--"}  # of one run


def new_figure(width: float = 7.0, height: float = 3.6) -> Figure:
    """An empty figure, apart from pyplot and its windows."""
    return Figure(figsize=(width, height), layout="constrained")


def clean(axes: Axes, x: str, y: str, title: str = "") -> None:
    """Name both axes, with their units, and leave out what says nothing."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, loc="left", fontsize="medium")
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def keep_slopes_honest(axes: Axes, least: float = 40.0) -> None:
    """At least so many percent on the y axis, within 0 to 100: a line that hardly falls is to look so."""
    low, high = (min(max(end, 0.0), 100.0) for end in axes.get_ylim())
    low = min(max((low + high - least) / 2, 0.0), 100.0 - least, low)
    axes.set_ylim(low, max(low + least, high))


def run_axes(runs: Mapping[str, Any], width: float = 6.0, height: float = 4.2) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, on which every next line looks like another run."""
    if not runs:
        raise UserError("There are no runs to draw.")
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.set_prop_cycle(RUN_STYLES)
    return figure, axes


def show_picture(axes: Axes, picture: np.ndarray, name: str = "") -> None:
    """An image as it is, its name below (in which a dollar sign is a dollar sign)."""
    axes.imshow(picture, interpolation="nearest")
    bare(axes)
    axes.set_xlabel("\n".join(map(shortened, name.split("\n"))), fontsize="x-small", parse_math=False)


def without(axes: Axes, why: str) -> None:
    """Words in the place of a picture that cannot be made."""
    axes.text(0.5, 0.5, why, ha="center", va="center", fontsize="x-small", color="0.4", parse_math=False)
    axes.set_box_aspect(1)
    bare(axes)


def bare(axes: Axes) -> None:
    """A thin frame, no ticks: a picture has no scale."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("0.8")
