"""A suite's files: table.md and bars to look at, table.csv for spreadsheets, suite.json with everything."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.runs.tables import Table
from oltr.suites.seeds import SeedRow
from oltr.suites.table import shown_columns

BARS = ("bars.svg", "bars.png")
_NUMBERS = ("mean", "deviation", "published", "difference", "compared")  # the last minus the published
_CSV_HEAD = ("label", "method", "changes", "number", "seeds", *_NUMBERS)
_CHOSEN = ("threshold", "unknown_rate")  # how the open numbers were made
_PARTS = ("closed", "open", "identify")


def table_folder(out: Path, suite: str) -> Path:
    """Where the files go: `out`, or a folder of the suite's name in it if it holds another suite's table."""
    try:
        holder = json.loads((out / "suite.json").read_text(encoding="utf-8"))["suite"]
    except (OSError, ValueError, KeyError, TypeError):
        return out
    return out if holder == suite else out / suite


def write_suite(
    out: Path, table: Table, rows: Sequence[SeedRow], columns: Sequence[str], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the files, each atomically, with bars of the finished rows; returns what suite.json holds."""
    everything, ours = suite_json(rows, facts), (out / "suite.json").exists()
    write_files(out, "table", table, suite_csv(rows, shown_columns(rows, columns)))
    write_json(out / "suite.json", everything)
    _write_bars(out, rows, ours)
    return everything


def write_files(out: Path, name: str, table: Table, numbers: str) -> None:
    """A table as NAME.md, and its numbers as NAME.csv."""
    for kind, text in (("md", table.markdown() + "\n"), ("csv", numbers)):
        with atomic_write(out / f"{name}.{kind}") as part:
            part.write_text(text, encoding="utf-8")


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    with atomic_write(path) as part:
        text = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        part.write_text(text, encoding="utf-8")


def csv_text(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *lines])
    return text.getvalue()


def _write_bars(out: Path, rows: Sequence[SeedRow], ours: bool) -> None:
    """Without a finished row, bars that a suite drew here before are deleted."""
    from oltr.figures.save import save_figure
    from oltr.figures.suite_bars import suite_bars, suite_bars_figure

    try:
        figure = suite_bars_figure(suite_bars(rows))
    except UserError:
        for name in BARS if ours else ():
            (out / name).unlink(missing_ok=True)
        return
    for name in BARS:
        save_figure(figure, out / name)


def suite_csv(rows: Sequence[SeedRow], columns: Sequence[str]) -> str:
    """A line for each row and number, in fractions; unknown numbers are empty."""
    lines = []
    for row in rows:
        for column in columns:
            numbers = (row.mean(column), row.deviation(column), row.published_value(column))
            head = (row.label, row.method, " ".join(row.changes), column, len(row.values(column)))
            lines.append((*head, *numbers, row.difference(column), row.compared(column)))
    return csv_text(_CSV_HEAD, lines)


def suite_json(rows: Sequence[SeedRow], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Every number under every seed, mean and deviation, beside what was published; fractions."""
    return {**facts, "rows": [_row(row) for row in rows]}


def _kept(report: Mapping[str, Any]) -> tuple[str, ...]:
    return ("identify", "train_seconds") if "identify" in report else ("closed", "open", "train_seconds")


def _row(row: SeedRow) -> dict[str, Any]:
    reports = {str(seed): row.reports[seed].data for seed in sorted(row.reports)}
    measured = {
        f"{part}.{key}": None
        for report in reports.values()
        for part in _PARTS
        for key, value in report.get(part, {}).items()
        if isinstance(value, float) and key not in _CHOSEN
    }
    return {
        "label": row.label,
        "method": row.method,
        "changes": list(row.changes),
        "published": dict(row.published),
        "mean": {column: row.mean(column) for column in measured},
        "deviation": {column: row.deviation(column) for column in measured},
        "difference": {column: gap for column in measured if (gap := row.difference(column)) is not None},
        "compared": {column: row.compared(column) for column in measured},
        "seeds": {seed: {key: report.get(key) for key in _kept(report)} for seed, report in reports.items()},
        "failed": {str(seed): why for seed, why in row.failures.items()},
    }
