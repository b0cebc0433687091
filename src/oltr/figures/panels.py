"""Single pictures within a figure."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes


def show_picture(axes: Axes, picture: np.ndarray, name: str = "") -> None:
    """An image as it is, its name below (in which a dollar sign is a dollar sign)."""
    axes.imshow(picture, interpolation="nearest")
    bare(axes)
    axes.set_xlabel("\n".join(map(shortened, name.split("\n"))), fontsize="x-small", parse_math=False)


def shortened(name: str, most: int = 32) -> str:
    """A name that fits under a picture: of a long one both ends.

    >>> shortened("abcdefghij", 7)
    'abc…hij'
    """
    kept = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - kept]}…{name[-kept:]}"


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
