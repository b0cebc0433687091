"""Accuracy of every row of a suite as bars, one group of bars for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from oltr.errors import UserError
from oltr.figures.figure import RunFigure
from oltr.figures.run_names import shortened
from oltr.figures.style import SERIES, SHOT_COLOURS, clean, new_figure

# By part the measures, in order.
COLOURS = {
    "open": {**SHOT_COLOURS, "overall": SERIES[2]},
    "closed": {**SHOT_COLOURS, "overall": SERIES[2]},
    "identify": {
        "many": SHOT_COLOURS["many"],
        "few": SHOT_COLOURS["medium"],
        "one": SHOT_COLOURS["few"],
        "zero": "0.55",
        "rank1": SERIES[2],
    },
}
WORDS = {
    "open": "open-set accuracy (%)",
    "closed": "accuracy (%)",
    "identify": "identification rate, by pseudo-shots (%)",
}
NAMES = {"rank1": "full test"}
UPRIGHT_UP_TO, SHORT = 5, 16  # rows, and letters of a label, beyond which bars lie down
BAR, BARS = 0.2, 0.85  # of the place of a row, one of them and all together


class Row(Protocol):
    """One row of a suite over several seeds; a column is "part.number", e.g. "open.few"."""

    label: str
    seeds: tuple[int, ...]  # those it is to have

    @property
    def reports(self) -> Mapping[int, Any]:
        """Of the seeds that are done."""

    def values(self, column: str) -> list[float]:
        """The number under each seed that has it."""

    def mean(self, column: str) -> float | None:
        """Over the seeds that are done."""

    def deviation(self, column: str) -> float | None:
        """Over the seeds; None for a single one."""

    def published_value(self, column: str) -> float | None:
        """What others found."""


@dataclass(frozen=True, eq=False)
class SuiteBars:
    """M measures of R finished rows in fractions, R×M float64 each, NaN where there is none."""

    part: str  # open, closed or identify
    labels: tuple[str, ...]  # R
    measures: tuple[str, ...]  # M, of COLOURS those that somebody has
    means: np.ndarray
    deviations: np.ndarray  # over the seeds; NaN for a single one
    published: np.ndarray
    seeds: int  # of the row that has most
    left_out: tuple[str, ...]  # labels of rows that are not finished


def suite_bars(rows: Sequence[Row]) -> SuiteBars:
    """Rates of identification or open-set accuracies if any row has them, else those of the closed set; of
    rows with all their seeds."""
    done = [row for row in rows if len(row.reports) == len(row.seeds)]
    whole = {"identify": "rank1", "open": "overall", "closed": "overall"}
    some = (part for part, key in whole.items() if any(row.values(f"{part}.{key}") for row in done))
    part = next(some, "closed")
    shown = [row for row in done if row.values(f"{part}.{whole[part]}")]
    if not shown:
        raise UserError("No row is finished yet, so there are no bars to draw.")
    measures = tuple(name for name in COLOURS[part] if any(row.values(f"{part}.{name}") for row in shown))
    columns = [f"{part}.{name}" for name in measures]

    def numbers(of: str) -> np.ndarray:
        return np.array([[getattr(row, of)(column) for column in columns] for row in shown], dtype=np.float64)

    return SuiteBars(
        part=part,
        labels=tuple(row.label for row in shown),
        measures=measures,
        means=numbers("mean"),
        deviations=numbers("deviation"),
        published=numbers("published_value"),
        seeds=max(len(row.reports) for row in shown),
        left_out=tuple(row.label for row in rows if row not in shown),
    )


def suite_bars_figure(bars: SuiteBars) -> Figure:
    """Upright for a few rows with short labels, else lying: then labels of any length can be read."""
    rows = len(bars.labels)
    upright = rows <= UPRIGHT_UP_TO and max(map(len, bars.labels)) <= SHORT
    figure = new_figure(7.0, 3.8 if upright else 1.4 + 0.48 * rows)
    axes = figure.add_subplot()
    _draw(axes, bars, upright)
    words = WORDS[bars.part]
    words += f"\nmean ± deviation over {bars.seeds} seeds" if bars.seeds > 1 else ""
    names = [shortened(label, 44) for label in bars.labels]
    if upright:
        clean(axes, "", words)
        axes.set_xticks(range(rows), names, parse_math=False)
    else:
        clean(axes, words, "")
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x", color="0.9", linewidth=0.8)
        axes.set_yticks(range(rows), names, parse_math=False)
        axes.set_ylim(rows - 0.5, -0.5)  # the first row on top, as in the table
    (axes.set_xlabel if upright else axes.set_ylabel)("row of the suite")
    axes.tick_params("x" if upright else "y", length=0)
    figure.legend(
        handles=_legend(bars, upright), frameon=False, loc="outside lower center", ncols=6, fontsize="small"
    )
    if bars.left_out:
        figure.suptitle(
            f"not finished, left out: {shortened(', '.join(bars.left_out), 90)}",
            fontsize="small",
            color="0.3",
            parse_math=False,
        )
    return figure


def _draw(axes: Axes, bars: SuiteBars, upright: bool) -> None:
    rows, ends = np.arange(len(bars.labels)), 100 * (bars.means + np.nan_to_num(bars.deviations))
    width = min(BAR, BARS / len(bars.measures))
    for number, measure in enumerate(bars.measures):
        colour = COLOURS[bars.part][measure]
        places = rows + width * (number - (len(bars.measures) - 1) / 2)
        values, spread = 100 * bars.means[:, number], 100 * bars.deviations[:, number]
        known = np.isfinite(spread)
        if upright:
            axes.bar(places, values, 0.9 * width, color=colour)
        else:
            axes.barh(places, values, 0.9 * width, color=colour)
        across = (places[known], values[known])
        axes.errorbar(
            *(across if upright else across[::-1]),
            **{"yerr" if upright else "xerr": spread[known]},
            fmt="none",
            ecolor="black",
            elinewidth=0.9,
            capsize=1.5,
        )
        tick = axes.hlines if upright else axes.vlines
        theirs = 100 * bars.published[:, number]
        tick(theirs, places - width / 2, places + width / 2, color="black", linewidth=2)
    highest = np.nanmax(np.append(ends, 100 * bars.published))
    (axes.set_ylim if upright else axes.set_xlim)(0, min(100, 1.06 * max(highest, 1)))


def _legend(bars: SuiteBars, upright: bool) -> list[Line2D | Patch]:
    colours = COLOURS[bars.part]
    marks: list[Line2D | Patch] = [
        Patch(color=colours[measure], label=NAMES.get(measure, measure)) for measure in bars.measures
    ]
    if np.isfinite(bars.published).any():
        marks.append(
            Line2D(
                [], [], linestyle="", marker="_" if upright else "|", color="black", mew=2, label="published"
            )
        )
    return marks


FIGURE = RunFigure(
    order=180,
    name="ablation",
    title="Ablation study",
    paper="Fig. 5",
    caption="Accuracy of each shot group as attention, memory and the other parts are switched on one after "
    "the other, one training each; bars.svg and bars.png beside the table. Every suite draws such bars.",
    needs="separate training runs",
    draw=None,
    made_by="oltr suite ablation",
)
