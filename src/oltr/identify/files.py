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
    return [NUMBERS, TABLE]
