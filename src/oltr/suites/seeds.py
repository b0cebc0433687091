"""One row of a table over several seeds: mean, deviation, and the difference to the published value."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from oltr.runs.published_row import number_compared

LETTERS = 400  # of a failure; some name every file


class Numbers(Protocol):
    """What was measured on one run: a `Report`, or the numbers of an identification."""

    @property
    def data(self) -> Mapping[str, Any]:
        """By part and name, fractions."""


@dataclass
class SeedRow:
    """The reports of one system under each seed; a column is "part.number", e.g. "closed.few"."""

    label: str
    method: str
    changes: tuple[str, ...]
    seeds: tuple[int, ...]  # those it is to have
    published: Mapping[str, Any] = field(default_factory=dict)  # in the report's own shape
    reports: dict[int, Numbers] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)  # seed → why it has no report

    def values(self, column: str) -> list[float]:
        """The number under each seed that has it, in the order of the seeds."""
        part, _, key = column.partition(".")
        found = [(self.reports[seed].data.get(part) or {}).get(key) for seed in sorted(self.reports)]
        return [value for value in found if value is not None]

    def mean(self, column: str) -> float | None:
        """Over the seeds that are done."""
        values = self.values(column)
        return statistics.fmean(values) if values else None

    def compared(self, column: str) -> float | None:
        """The mean with shot groups counted as the published row counts them."""
        if "shots" not in self.published:
            return self.mean(column)
        part, _, key = column.partition(".")
        found = [number_compared(report.data, part, key) for report in self.reports.values()]
        values = [value for value in found if value is not None]
        return statistics.fmean(values) if values else None

    def deviation(self, column: str) -> float | None:
        """√(Σ (x − mean)² / (n − 1)); None for a single seed."""
        values = self.values(column)
        return statistics.stdev(values) if len(values) > 1 else None

    def published_value(self, column: str) -> float | None:
        part, _, key = column.partition(".")
        return (self.published.get(part) or {}).get(key)

    def difference(self, column: str) -> float | None:
        """Our mean minus the published value, shot groups counted as there."""
        ours, theirs = self.compared(column), self.published_value(column)
        return None if ours is None or theirs is None else ours - theirs


def one_line(text: str) -> str:
    """A failure as a note under the table has it."""
    text = " ".join(text.split())
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
