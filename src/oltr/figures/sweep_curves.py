"""Measures along a sweep, of several systems under several seeds, and their picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from oltr.errors import UserError
from oltr.figures.open_classes_sweep import OpenClassesSweep
from oltr.figures.run_names import legend_below
from oltr.figures.style import SERIES, clean, keep_slopes_honest, new_figure
from oltr.figures.threshold_sweep import MEASURES, ThresholdSweep
from oltr.figures.values import threshold_words

AXES = {
    "threshold": "threshold on the maximum softmax probability (MSP)",
    "open": "number of open classes",
    "longtail": "Pareto power α of the class sizes (smaller: more imbalanced)",
}
DRAWN: dict[str, Literal["-", "--"]] = {"overall": "-", "f_measure": "--"}  # measures that are drawn, and how
# One for each round of the colours: kinds of lines, which tell runs apart elsewhere, tell measures here.
MARKERS = ("o", "s", "^", "D")
CROWDED = 30  # points from which on markers hide their line


@dataclass(frozen=True, eq=False)
class Curve:
    """One measure of one system at X places of a sweep, under each of N seeds, in fractions."""

    label: str
    measure: str
    at: np.ndarray  # X float64, rising
    seeds: tuple[int, ...]  # N
    values: np.ndarray  # N×X float64, NaN where there is none
    draw_deviation: np.ndarray | None = (
        None  # X float64, over random draws inside a seed, mean over the seeds
    )
    thresholds: tuple[float, ...] = ()  # N, at which unknown images are told; empty where these are swept

    @property
    def mean(self) -> np.ndarray:
        """Over the seeds that have a value, X; NaN where none has."""
        return np.array([column.mean() if len(column) else np.nan for column in self._columns()])

    @property
    def deviation(self) -> np.ndarray:
        """√(Σ (x − mean)² / (n − 1)) over the seeds, X; NaN for fewer than two."""
        return np.array([column.std(ddof=1) if len(column) > 1 else np.nan for column in self._columns()])

    @property
    def counts(self) -> np.ndarray:
        """Seeds that have a value, X int64."""
        return np.isfinite(self.values).sum(axis=0)

    def _columns(self) -> list[np.ndarray]:
        return [column[np.isfinite(column)] for column in self.values.T]


def threshold_curves(label: str, sweeps: Mapping[int, ThresholdSweep]) -> list[Curve]:
    """A curve for each measure, from the sweep of each seed over the same thresholds."""
    first = next(iter(sweeps.values()))
    return [
        Curve(
            label,
            measure,
            first.thresholds,
            tuple(sweeps),
            np.stack([sweep.measures[measure] for sweep in sweeps.values()]),
        )
        for measure in MEASURES
        if measure in first.measures
    ]


def open_classes_curves(label: str, sweeps: Mapping[int, OpenClassesSweep]) -> list[Curve]:
    """The F-measure, the mean over the draws of each seed."""
    sizes = next(iter(sweeps.values())).sizes.astype(np.float64)
    means, spreads = (
        np.stack([getattr(sweep, name) for sweep in sweeps.values()]) for name in ("mean", "deviation")
    )
    thresholds = tuple(sweep.threshold for sweep in sweeps.values())
    return [Curve(label, "f_measure", sizes, tuple(sweeps), means, spreads.mean(axis=0), thresholds)]


def sweep_figure(sweep: str, curves: Sequence[Curve]) -> Figure:
    """A colour for each system, a kind of line for each measure; one deviation to either side as a band."""
    shown = [curve for curve in curves if curve.measure in DRAWN]
    if not shown:
        raise UserError("There are no runs to draw.")
    labels = list(dict.fromkeys(curve.label for curve in shown))
    measures = [measure for measure in DRAWN if any(curve.measure == measure for curve in shown)]
    figure = new_figure(6.4, 4.4)
    axes = figure.add_subplot()
    for curve in shown:
        look, band = _look(labels.index(curve.label), len(curve.at)), _band(curve)
        line = DRAWN[curve.measure] if len(measures) > 1 else "-"
        axes.plot(curve.at, 100 * curve.mean, linestyle=line, **look)
        low, high = 100 * (curve.mean - band), 100 * (curve.mean + band)
        axes.fill_between(curve.at, low, high, color=look["color"], alpha=0.15, linewidth=0)
    if sweep == "open":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if sweep == "longtail":
        axes.set_xticks(shown[0].at, [f"{alpha:g}" for alpha in shown[0].at])
    thresholds = [threshold for curve in shown for threshold in curve.thresholds]
    title = f"at the {threshold_words(thresholds)}" if thresholds else ""
    clean(axes, AXES[sweep] + _spread_words(shown), _measure_words(measures), title)
    keep_slopes_honest(axes)
    points = max(len(curve.at) for curve in shown)
    marks = [Line2D([], [], label=label, **_look(place, points)) for place, label in enumerate(labels)]
    if len(measures) > 1:
        marks += [Line2D([], [], color="black", linestyle=DRAWN[m], label=MEASURES[m]) for m in measures]
    legend_below(figure, marks)
    return figure


def _look(place: int, points: int) -> dict[str, Any]:
    """The colour and the marker of a system; of a crowded line a few markers, and none in the first round."""
    around, colour = divmod(place, len(SERIES))
    crowded = points >= CROWDED
    marker = "" if crowded and not around else MARKERS[around % len(MARKERS)]
    each = max(points // 10, 1) if crowded else None
    return {"color": SERIES[colour], "marker": marker, "markersize": 4, "markevery": each}


def _band(curve: Curve) -> np.ndarray:
    """Between seeds, where there are several; else between draws, if there are any."""
    if len(curve.seeds) > 1 or curve.draw_deviation is None:
        return np.nan_to_num(curve.deviation)
    return curve.draw_deviation


def _spread_words(curves: Sequence[Curve]) -> str:
    seeds = max(len(curve.seeds) for curve in curves)
    if seeds > 1:
        return f"\nmean ± deviation over {seeds} seeds"
    drawn = any(curve.draw_deviation is not None for curve in curves)
    return "\nmean ± deviation over random choices of the open classes" if drawn else ""


def _measure_words(measures: Sequence[str]) -> str:
    if len(measures) > 1:
        return "open-set accuracy and F-measure (%)"
    return "F-measure (%)" if measures == ["f_measure"] else "open-set accuracy (%)"
