"""Names of runs in titles and legends, however long and however many they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from matplotlib.artist import Artist
from matplotlib.figure import Figure

Numbers = TypeVar("Numbers")
KEPT = 7  # letters of a beginning that all names share
LETTER, MARK, ROW = 0.065, 0.57, 0.17  # inches of a legend: a letter, a mark with its margins, a line
ROWS = 2  # lines that a figure has room for as it is


def short_names(runs: Mapping[str, Numbers], most: int = 40) -> dict[str, Numbers]:
    """The same runs under names of at most `most` letters that tell them apart.

    Where one is longer, all lose most of what they begin with alike; if two become equal, all are numbered.

    >>> list(short_names({"2026-resnet50-plain-0": 1, "2026-resnet50-class-aware-0": 2}, 18))
    ['…snet50-plain-0', '…snet50-c…-aware-0']
    """
    names = list(runs)
    differing = (place for place, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1)
    alike = next(differing, 0) - KEPT
    if alike > 1 and max(map(len, names), default=0) > most:
        names = [f"…{name[alike:]}" for name in names]
    short = [shortened(name, most) for name in names]
    if len(set(short)) < len(short):
        marks = [f" ({place})" for place in range(1, len(names) + 1)]
        short = [shortened(name, most - len(mark)) + mark for name, mark in zip(names, marks, strict=True)]
    return dict(zip(short, runs.values(), strict=True))


def shortened(name: str, most: int = 32) -> str:
    """A name that fits under a picture: of a long one both ends.

    >>> shortened("abcdefghij", 7)
    'abc…hij'
    """
    kept = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - kept]}…{name[-kept:]}"


def legend_below(figure: Figure, marks: Sequence[Artist]) -> None:
    """A legend in as many columns as the figure's width holds; many lines make the figure taller."""
    names = [str(mark.get_label()) for mark in marks]
    longest = max(len(line) for name in names for line in name.split("\n"))
    columns = max(1, min(len(marks), int(figure.get_figwidth() / (MARK + LETTER * longest))))
    rows = -(-len(marks) // columns)
    figure.set_figheight(figure.get_figheight() + ROW * max(rows - ROWS, 0))
    # Matplotlib leaves out a name that begins with an underscore, so the names are put in afterwards.
    legend = figure.legend(
        marks,
        [""] * len(marks),
        frameon=False,
        loc="outside lower center",
        ncols=columns,
        fontsize="small",
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)  # a name with two dollar signs is no formula
        text.set_text(name)
