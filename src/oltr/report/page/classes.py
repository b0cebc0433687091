"""A line for each class, with its accuracy and F1 in each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oltr.metrics.shots import shot_groups
from oltr.report.page.load import PageRun

MOST = 2_000  # lines that a browser sorts in about half a second


@dataclass(frozen=True)
class ClassLine:
    """One class; accuracy and F1 of each run in turn, None without test images."""

    name: str
    group: str
    images: int
    values: tuple[float | None, ...]


def class_lines(runs: Sequence[PageRun], best: PageRun) -> list[ClassLine]:
    """By falling number of training images of the first run; of very many, those the best does worst on."""
    first, column = runs[0].loaded, 2 * list(runs).index(best)
    groups = shot_groups(first.counts, first.shots)
    per_class = [run.report["per_class"] for run in runs]
    lines = [
        ClassLine(
            name,
            str(groups[number]),
            int(first.counts[number]),
            tuple(part[number][key] for part in per_class for key in ("accuracy", "f1")),
        )
        for number, name in enumerate(first.class_names)
    ]
    if len(lines) > MOST:
        lines = sorted(lines, key=lambda line: _or_last(line.values[column]))[:MOST]
    return sorted(lines, key=lambda line: -line.images)


def _or_last(accuracy: float | None) -> float:
    return 2.0 if accuracy is None else accuracy
