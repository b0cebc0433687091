"""Accuracy of every class at a glance: a bar each, from the most common class to the rarest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from oltr.metrics.shots import GROUPS
from oltr.report.page.runs import MeasuredRun
from oltr.wording import count

NAMED = 16  # classes: up to so many have a line and their name
MOST = 240  # bars: of more classes, neighbours share one
LOWEST = 5  # classes told by name


@dataclass(frozen=True)
class Bar:
    """One class, or neighbours in a very long tail; shares from 0 to 1, None without test images."""

    label: str
    group: str
    height: float | None
    detail: str
    within: tuple[float, float] | None = None


@dataclass(frozen=True)
class Chart:
    """The bars, the mean of each shot group (name, classes, mean), and the classes that do worst."""

    bars: tuple[Bar, ...]
    groups: tuple[tuple[str, str, str], ...]
    lowest: str
    named: bool  # whether each bar shows its class's name


def class_chart(run: MeasuredRun) -> Chart:
    """Of one run, on the test images when nothing may be rejected."""
    entries, groups = run.report.per_class, run.run.groups
    order = np.argsort([-entry.train_count for entry in entries], kind="stable")
    parts = np.array_split(order, min(len(order), MOST))
    shots = [
        (group, count(getattr(run.report.shots, group), "class"), _percent(getattr(run.report.closed, group)))
        for group in GROUPS
        if getattr(run.report.shots, group)
    ]
    bars = tuple(_bar(run, part.tolist(), [str(groups[place]) for place in part]) for part in parts)
    return Chart(bars, tuple(shots), _lowest(run), len(entries) <= NAMED)


def _bar(run: MeasuredRun, part: list[int], groups: list[str]) -> Bar:
    entries = [run.report.per_class[place] for place in part]
    tested = [entry.accuracy for entry in entries if entry.accuracy is not None]
    height = sum(tested) / len(tested) if tested else None
    shown = "no test images" if height is None else _percent(height)
    images = sorted({entry.train_count for entry in entries})
    trained = f"{images[0]:,}" if len(images) == 1 else f"{images[0]:,} to {images[-1]:,}"
    label = entries[0].name if len(entries) == 1 else count(len(entries), "class")
    spread = entries[0].interval if len(entries) == 1 else None
    within = None if spread is None else (spread[0], spread[1])
    if within is not None:
        shown += f" (95 % interval {100 * within[0]:.0f} to {100 * within[1]:.0f})"
    detail = f"{label}: {shown}, {trained} training {'image' if images == [1] else 'images'}"
    return Bar(label, Counter(groups).most_common(1)[0][0], height, detail, within)


def _lowest(run: MeasuredRun) -> str:
    """The classes with the lowest accuracy, unless all are right."""
    wrong = [entry for entry in run.report.per_class if entry.accuracy is not None and entry.accuracy < 1]
    worst = sorted(wrong, key=lambda entry: (entry.accuracy, entry.train_count))[:LOWEST]
    return ", ".join(f"{entry.name} {_percent(entry.accuracy)}" for entry in worst)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}\u00a0%"
