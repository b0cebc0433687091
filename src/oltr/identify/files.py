"""What `oltr identify --out` leaves: the numbers, the table, and a figure where there are groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oltr.files import atomic_write
from oltr.identify.result import Result

NUMBERS, TABLE, FIGURES = "identify.json", "table.md", ("by-group.svg", "by-group.png")


def write_result(out: Path, result: Result, facts: Mapping[str, Any] | None = None) -> list[str]:
    """Write the files, each atomically, and delete a figure of groups of before; returns their names."""
    numbers = json.dumps({**result.to_dict(), **(facts or {})}, indent=1, ensure_ascii=False, allow_nan=False)
    for name, text in ((NUMBERS, numbers), (TABLE, result.table().markdown())):
        with atomic_write(out / name) as part:
            part.write_text(text + "\n", encoding="utf-8")
    return [NUMBERS, TABLE, *_write_figures(out, result)]


def _write_figures(out: Path, result: Result) -> tuple[str, ...]:
    """The groups of the headline's embedding, if any has probes."""
    name, by_group = next(iter(result.measured)), result.first.by_group
    columns = {column: {name: found} for column, found in by_group.items() if found.overall.images}
    if not columns:
        for file in FIGURES:
            (out / file).unlink(missing_ok=True)
        return ()
    from oltr.figures.by_group import by_group_figure
    from oltr.figures.save import save_figure

    figure = by_group_figure(columns, "probes identified at rank 1", "probes")
    for file in FIGURES:
        save_figure(figure, out / file)
    return FIGURES
