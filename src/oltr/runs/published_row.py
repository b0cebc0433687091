"""A published row beside ours: where it comes from, and our number counted as it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oltr.metrics.shots import rule_words


def published_source(row: Mapping[str, Any]) -> str:
    """Where a published row comes from, and how it counts shot groups if it says so."""
    words = [row["source"]] if row.get("source") else []
    if "shots" in row:
        words.append(f"its shot groups {rule_words(row['shots'])}, in the difference ours, too")
    return "; ".join(words)


def number_compared(data: Mapping[str, Any], part: str, key: str) -> float | None:
    """A number of report.json as the difference to the published row takes it."""
    regrouped = (data.get("regrouped") or {}).get(part) or {}
    return regrouped[key] if key in regrouped else (data.get(part) or {}).get(key)
