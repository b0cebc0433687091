"""A sweep's results on disk: sweep.md, sweep.csv, sweep.json, sweep.svg and sweep.png."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oltr.figures.save import save_figure
from oltr.figures.sweep_curves import AXES, Curve, sweep_figure
from oltr.files import atomic_write
from oltr.runs.tables import Table

FILES = ("sweep.md", "sweep.csv", "sweep.json", "sweep.svg", "sweep.png")
_CSV_HEAD = ("label", "measure", "at", "seeds", "mean", "deviation")


def write_sweep(
    out: Path, table: Table, sweep: str, curves: Sequence[Curve], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the files, each whole or not at all; returns what sweep.json holds."""
    everything = {
        **facts,
        "sweep": sweep,
        "at": AXES[sweep],
        "curves": [_curve(curve) for curve in curves],
    }
    texts = {
        "sweep.md": table.markdown() + "\n",
        "sweep.csv": sweep_csv(curves),
        "sweep.json": json.dumps(everything, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        with atomic_write(out / name) as part:
            part.write_text(text, encoding="utf-8")
    figure = sweep_figure(sweep, curves)
    for kind in ("svg", "png"):
        save_figure(figure, out / f"sweep.{kind}")
    return everything


def sweep_csv(curves: Sequence[Curve]) -> str:
    """A line for each system, measure and place, in fractions; what is not known is empty."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_CSV_HEAD)
    for curve in curves:
        columns = (curve.at, curve.counts, curve.mean, curve.deviation)
        for at, seeds, mean, deviation in zip(*(_plain(column) for column in columns), strict=True):
            table.writerow((curve.label, curve.measure, at, seeds, mean, deviation))
    return text.getvalue()


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


def _plain(values: np.ndarray) -> list[float | None]:
    """As JSON has numbers: NaN is None."""
    return [None if np.isnan(value) else value.item() for value in values]
