"""The table of a sweep: a line for each place, a block for each measure, a column for each system."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oltr.figures.sweep_curves import AXES, DRAWN, Curve
from oltr.figures.threshold_sweep import MEASURES
from oltr.runs.tables import MISSING, Table

LINES = 11  # of a longer sweep evenly spread places are shown, the first and the last among them
_HEADS = {"threshold": "threshold", "open": "open classes", "longtail": "α"}


def sweep_table(title: str, sweep: str, curves: Sequence[Curve], notes: Sequence[str] = ()) -> Table:
    """Means, with the deviation over seeds where there are several; accuracy in percent."""
    shown = [curve for curve in curves if curve.measure in DRAWN]
    places = np.unique(np.concatenate([curve.at for curve in shown]))
    if len(places) > LINES:
        places = places[np.linspace(0, len(places) - 1, LINES).round().astype(int)]
    groups: list[tuple[str, list[str]]] = [("", [_HEADS[sweep]])]
    columns: list[Curve] = []
    for measure in DRAWN:
        of_measure = [curve for curve in shown if curve.measure == measure]
        if of_measure:
            unit = " (%)" if measure == "overall" else ""
            groups.append((MEASURES[measure] + unit, [curve.label for curve in of_measure]))
            columns += of_measure
    rows = [[f"{place:g}", *(_cell(curve, float(place)) for curve in columns)] for place in places]
    seeds = sorted({seed for curve in shown for seed in curve.seeds})
    over = f", mean ± deviation over seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else ""
    head = f"{_HEADS[sweep]}: {AXES[sweep]}{over}."
    return Table(title, groups, rows, [head, *notes])


def _cell(curve: Curve, place: float) -> str:
    found = np.flatnonzero(curve.at == place)
    if not len(found) or np.isnan(curve.mean[found[0]]):
        return MISSING
    mean, deviation = _number(curve, curve.mean[found[0]]), curve.deviation[found[0]]
    return mean if np.isnan(deviation) else f"{mean} ± {_number(curve, deviation)}"


def _number(curve: Curve, value: float) -> str:
    return f"{value:.3f}" if curve.measure == "f_measure" else f"{100 * value:.1f}"
