"""What a results file says beside its rows: when, on what, with which versions."""

from __future__ import annotations

import inspect
import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import torch

from oltr.training.run_folder import hardware, versions

_LOAD_BEFORE = round(os.getloadavg()[0], 1)  # before the benchmark began


def record(
    out: Path | None, rows: list[dict[str, Any]], device: torch.device | None = None, **facts: Any
) -> None:
    """Write the rows so far with what they were measured on; nothing without `out`.

    To be called after each row: a benchmark that is cut short leaves what it had.
    """
    if out is None:
        return
    packages = facts.pop("packages", {})
    result = {
        "benchmark": Path(inspect.stack()[1].filename).name,
        "date": date.today().isoformat(),
        "hardware": hardware(device),
        "cores": os.cpu_count(),
        "load_before": _LOAD_BEFORE,
        "versions": versions() | packages,
        **facts,
        "rows": rows,
    }
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
