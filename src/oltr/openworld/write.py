"""A discovery as files: a table, a record, a page."""

from __future__ import annotations

import json
from pathlib import Path

from oltr.files import atomic_write
from oltr.openworld.discover import Discovery
from oltr.openworld.page import write_discovery
from oltr.runs.trained_run import TrainedRun


def write_result(found: Discovery, run: TrainedRun, out: Path) -> None:
    """clusters.csv, clusters.json and index.html in the folder `out`, each whole or not at all."""
    with atomic_write(out / "clusters.csv") as part:
        found.table.to_csv(part, index=False, lineterminator="\n", encoding="utf-8")
    with atomic_write(out / "clusters.json") as part:
        part.write_text(json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_discovery(found, run, out)
