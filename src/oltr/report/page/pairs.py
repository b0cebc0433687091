"""The classes that a run takes for each other."""

from __future__ import annotations

from dataclasses import dataclass

from oltr.figures.mistakes import confused_pairs
from oltr.report.loaded_run import LoadedRun

MOST = 12  # pairs


@dataclass(frozen=True)
class Pair:
    """A class, another that its test images are given, how many of them, and which share they are."""

    truth: str
    taken_for: str
    images: int
    of: int

    @property
    def share(self) -> float:
        return self.images / self.of


def most_confused(run: LoadedRun) -> list[Pair]:
    """The pairs with the most images first; images called unknown are in none."""
    found = confused_pairs(run.decisions, MOST)
    columns = zip(found.labels, found.predictions, found.images, found.of, strict=True)
    names = run.class_names
    return [Pair(names[true], names[taken], int(images), int(of)) for true, taken, images, of in columns]
