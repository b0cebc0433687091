"""Tables of classes: accuracy and F1 of each in every run, and those that a run takes for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oltr.report.page.mistakes import confused_pairs
from oltr.report.page.runs import MeasuredRun
from oltr.runs.trained_run import TrainedRun

MOST = 2_000  # lines that a browser sorts in about half a second
MOST_PAIRS = 12


@dataclass(frozen=True)
class ClassLine:
    """One class; accuracy and F1 of each run in turn, None without test images."""

    name: str
    group: str
    images: int
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Pair:
    """A class, another that its test images are given, how many of them, and how many it has."""

    truth: str
    taken_for: str
    images: int
    of: int

    @property
    def share(self) -> float:
        return self.images / self.of


def class_lines(runs: Sequence[MeasuredRun], best: MeasuredRun) -> list[ClassLine]:
    """By falling number of training images of the first run; of very many, those the best does worst on."""
    first, column = runs[0].run, 2 * list(runs).index(best)
    numbers = [[each.report.per_class[place] for each in runs] for place in range(len(first.class_names))]
    lines = [
        ClassLine(name, str(group), int(count), tuple(v for one in each for v in (one.accuracy, one.f1)))
        for name, group, count, each in zip(
            first.class_names, first.groups, first.counts, numbers, strict=True
        )
    ]
    if len(lines) > MOST:
        lines = sorted(lines, key=lambda line: _or_last(line.values[column]))[:MOST]
    return sorted(lines, key=lambda line: -line.images)


def most_confused(run: TrainedRun) -> list[Pair]:
    """The pairs with the most images first; rejected images are in none."""
    found = confused_pairs(run.decisions, MOST_PAIRS)
    columns = zip(found.labels, found.predictions, found.images, found.of, strict=True)
    names = run.class_names
    return [Pair(names[true], names[taken], int(images), int(of)) for true, taken, images, of in columns]


def _or_last(accuracy: float | None) -> float:
    return 2.0 if accuracy is None else accuracy
