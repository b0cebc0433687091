"""Labelled images that arrive in weeks, new classes among them, and a part of every class held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HELD_OUT = 0.3  # of each class's images
NEVER = 0.2  # of the new classes: what is still unknown at the end
TURN_UP = 0.75  # of the weeks: in the later ones no further class is new


@dataclass(frozen=True, eq=False)
class Stream:
    """When each of N images comes and each of C classes is first seen."""

    week: np.ndarray  # N int64; -1: held out for measuring, or of a class that never comes
    held_out: np.ndarray  # N bool
    first_week: np.ndarray  # C int64; -1: before the first week; `weeks`: never
    weeks: int


def make_stream(labels: np.ndarray, known: int, weeks: int, seed: int) -> Stream:
    """N labels, of which 0..known-1 are the recogniser's classes and the others new, drawn into weeks.

    New classes turn up one after the other; from then on each week brings some of their images.
    """
    random = np.random.default_rng(seed)
    classes = int(labels.max()) + 1
    new = random.permutation(np.arange(known, classes))
    coming = new[: len(new) - round(NEVER * len(new))]
    first = np.full(classes, -1)
    first[new] = weeks
    first[coming] = np.arange(len(coming)) * max(round(TURN_UP * weeks), 1) // max(len(coming), 1)
    week, held_out = np.full(len(labels), -1), np.zeros(len(labels), dtype=bool)
    for name in range(classes):
        rows = random.permutation(np.flatnonzero(labels == name))
        held = max(round(HELD_OUT * len(rows)), min(1, len(rows)))
        held_out[rows[:held]] = True
        if first[name] < weeks:
            week[rows[held:]] = random.integers(max(first[name], 0), weeks, len(rows) - held)
    return Stream(week, held_out, first, weeks)
