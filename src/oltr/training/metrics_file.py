"""metrics.csv: a row for each epoch, and for each head that was fitted."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from oltr.files import atomic_write


def write_metrics(file: Path, history: list[dict[str, Any]]) -> None:
    """The rows so far, written anew each time: a resumed run has no row twice."""
    with atomic_write(file) as part, part.open("w", newline="", encoding="utf-8") as opened:
        table = csv.DictWriter(opened, fieldnames=list(history[0]))
        table.writeheader()
        table.writerows(history)


def read_metrics(file: Path) -> list[dict[str, Any]]:
    """The rows, numbers again; none where there is no file yet."""
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return [{name: _number(cell) for name, cell in row.items()} for row in csv.DictReader(opened)]


def _number(cell: str) -> float | None:
    if not cell:
        return None
    return int(cell) if cell.isdecimal() else float(cell)
