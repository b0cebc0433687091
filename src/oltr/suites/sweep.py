"""A sweep over thresholds, open classes or imbalance: curves of the finished runs, their table and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oltr.runs.tables import MISSING, Table
from oltr.suites.files import csv_text, write_files, write_json
from oltr.suites.measure import Results, row_rule
from oltr.suites.suite_file import Suite

if TYPE_CHECKING:
    from oltr.figures.sweep_curves import Curve

FILES = ("sweep.md", "sweep.csv", "sweep.json", "sweep.svg", "sweep.png")
THRESHOLDS = 101  # from 0 to 1
LINES = 11  # of a longer sweep the table has evenly spread places, the first and the last among them
_HEADS = {"threshold": "threshold", "open": "open classes", "longtail": "α"}
_CSV_HEAD = ("label", "measure", "at", "seeds", "mean", "deviation")


def sweep_curves(suite: Suite, done: Sequence[Results]) -> list[Curve]:
    """The curves of every row that has a finished run."""
    if suite.sweep == "longtail":
        return _longtail_curves([results for results in done if not results.part.backbone])

    from oltr.figures.open_classes_sweep import open_classes_sweep
    from oltr.figures.sweep_curves import open_classes_curves, threshold_curves
    from oltr.figures.threshold_sweep import threshold_sweep

    (results,) = done
    open_classes = results.manifest.rows("open")["label"].tolist()
    sweeps: dict[str, dict[int, Any]] = {row.label: {} for row in results.rows}
    for run in results.part.runs:
        for wanted, row in results.of(run):
            if run.config.seed not in row.reports:
                continue
            trained = results.open(run)
            if suite.sweep == "threshold":
                found: Any = threshold_sweep(trained, np.linspace(0, 1, THRESHOLDS), "softmax")
            else:
                found = open_classes_sweep(trained.under(row_rule(wanted, trained)), open_classes)
            sweeps[row.label][run.config.seed] = found
    curves_of: Any = threshold_curves if suite.sweep == "threshold" else open_classes_curves
    return [curve for label, seeds in sweeps.items() if seeds for curve in curves_of(label, seeds)]


def _longtail_curves(done: Sequence[Results]) -> list[Curve]:
    from oltr.figures.longtail_sweep import longtail_curves

    by_label: dict[str, dict[float, dict[int, Any]]] = {}
    for results in done:
        for wanted, row in zip(results.part.suite.rows, results.rows, strict=True):
            by_label.setdefault(wanted.label, {})[results.part.alpha] = row.reports
    found = {label: reports for label, reports in by_label.items() if any(reports.values())}
    return [curve for label, reports in found.items() for curve in longtail_curves(label, reports)]


def write_sweep(
    out: Path, table: Table, sweep: str, curves: Sequence[Curve], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the files, each atomically; returns what sweep.json holds."""
    from oltr.figures.save import save_figure
    from oltr.figures.sweep_curves import AXES, sweep_figure

    held = [_curve(curve) for curve in curves]
    everything = {**facts, "sweep": sweep, "at": AXES[sweep], "curves": held}
    write_files(out, "sweep", table, sweep_csv(curves))
    write_json(out / "sweep.json", everything)
    figure = sweep_figure(sweep, curves)
    for kind in ("svg", "png"):
        save_figure(figure, out / f"sweep.{kind}")
    return everything


def sweep_table(title: str, sweep: str, curves: Sequence[Curve], notes: Sequence[str] = ()) -> Table:
    """A line for each place, a block for each measure, a column for each system; accuracy in percent."""
    from oltr.figures.sweep_curves import AXES, DRAWN
    from oltr.figures.threshold_sweep import MEASURES

    shown = [curve for curve in curves if curve.measure in DRAWN]
    places = np.unique(np.concatenate([curve.at for curve in shown]))
    if len(places) > LINES:
        places = places[np.linspace(0, len(places) - 1, LINES).round().astype(int)]
    groups: list[tuple[str, list[str]]] = [("", [_HEADS[sweep]])]
    columns: list[Curve] = []
    for measure in DRAWN:
        if of_measure := [curve for curve in shown if curve.measure == measure]:
            unit = " (%)" if measure == "overall" else ""
            groups.append((MEASURES[measure] + unit, [curve.label for curve in of_measure]))
            columns += of_measure
    rows = [[f"{place:g}", *(_cell(curve, float(place)) for curve in columns)] for place in places]
    seeds = sorted({seed for curve in shown for seed in curve.seeds})
    over = f", mean ± deviation over seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else ""
    return Table(title, groups, rows, [f"{_HEADS[sweep]}: {AXES[sweep]}{over}.", *notes])


def rule_note(suite: Suite) -> list[str]:
    """By what rule images are rejected along the sweep, unless it is the threshold that is swept."""
    if suite.sweep == "threshold":
        return []
    rates = {row.unknown_rate for row in suite.rows}
    rate = rates.pop() if len(rates) == 1 else None
    if rate is None:
        return ["Images are called unknown as in table.md."]
    return [f"The threshold rejects at most {100 * rate:.1f} % of known validation images."]


def sweep_csv(curves: Sequence[Curve]) -> str:
    """A line for each system, measure and place, in fractions; unknown numbers are empty."""
    lines = []
    for curve in curves:
        columns = [_plain(values) for values in (curve.at, curve.counts, curve.mean, curve.deviation)]
        lines += [(curve.label, curve.measure, *line) for line in zip(*columns, strict=True)]
    return csv_text(_CSV_HEAD, lines)


def _curve(curve: Curve) -> dict[str, Any]:
    entry = {
        "label": curve.label,
        "measure": curve.measure,
        "at": _plain(curve.at),
        "mean": _plain(curve.mean),
        "deviation": _plain(curve.deviation),
        "seeds": {str(seed): _plain(values) for seed, values in zip(curve.seeds, curve.values, strict=True)},
    }
    if curve.draw_deviation is not None:
        entry["draw_deviation"] = _plain(curve.draw_deviation)
    if curve.thresholds:
        entry["thresholds"] = list(curve.thresholds)
    return entry


def _cell(curve: Curve, place: float) -> str:
    found = np.flatnonzero(curve.at == place)
    if not len(found) or np.isnan(curve.mean[found[0]]):
        return MISSING
    mean, deviation = _number(curve, curve.mean[found[0]]), curve.deviation[found[0]]
    return mean if np.isnan(deviation) else f"{mean} ± {_number(curve, deviation)}"


def _number(curve: Curve, value: float) -> str:
    return f"{value:.3f}" if curve.measure == "f_measure" else f"{100 * value:.1f}"


def _plain(values: np.ndarray) -> list[float | None]:
    """As JSON has numbers: NaN is None."""
    return [None if np.isnan(value) else value.item() for value in values]
