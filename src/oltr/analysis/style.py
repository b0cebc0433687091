"""What all figures share: colours that everyone can tell apart, and axes without ornament."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# From Okabe and Ito's palette, which colour-blind readers can tell apart.
SHOT_COLOURS = {"many": "#0072B2", "medium": "#E69F00", "few": "#CC79A7"}
OPEN_COLOUR = "#555555"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # runs side by side


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
