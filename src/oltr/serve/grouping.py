"""Unknown images in clusters, made anew in the background as images come."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oltr.console import console
from oltr.files import atomic_write
from oltr.openworld.discover import Cluster, Nearest, clustered
from oltr.serve.snapshot import Snapshot

QUIET = 1.0  # seconds without further images after which they are grouped
FEW = 0.1  # share of the unknown images that may wait for the next grouping


@dataclass(frozen=True, eq=False)
class Groups:
    """Clusters of the images that were unknown at some moment."""

    number: int = 0  # counts the groupings
    clusters: tuple[Cluster, ...] = ()  # their paths are ids of images

    @cached_property
    def places(self) -> dict[str, Cluster]:
        """The cluster of each image."""
        return {number: cluster for cluster in self.clusters for number in cluster.paths}

    def waiting(self, now: Snapshot) -> int:
        """Unknown images that are in no cluster yet."""
        return sum(number not in self.places for number in now.unknown())

    def of(self, now: Snapshot) -> list[Cluster]:
        """The clusters without images that have a name by now; what to label first comes first."""
        unknown = set(now.unknown())
        left = ((each, tuple(n for n in each.paths if n in unknown)) for each in self.clusters)
        found = [replace(each, paths=paths, size=len(paths)) for each, paths in left if paths]
        return sorted(found, key=lambda each: each.label_first)

    def save(self, place: Path) -> None:
        """As JSON, atomically."""
        with atomic_write(place) as part:
            part.write_text(json.dumps({"number": self.number, "clusters": list(map(asdict, self.clusters))}))

    @classmethod
    def load(cls, place: Path) -> Groups:
        """What `save` wrote; none where it cannot be read, for it is quickly made anew."""
        try:
            found = json.loads(place.read_text())
            return cls(found["number"], tuple(map(_cluster, found["clusters"])))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()


def _cluster(values: dict[str, Any]) -> Cluster:
    nearest = tuple(Nearest(**each) for each in values["nearest"])
    return Cluster(**(values | {"nearest": nearest, "paths": tuple(values["paths"])}))


def grouped(now: Snapshot, features: int, number: int) -> Groups:
    """The unknown images of a moment in clusters."""
    ids = list(now.unknown())
    if not ids:
        return Groups(number)
    rows = pd.DataFrame([{"path": each, **now.answers[each]} for each in ids])
    found = np.stack([now.images[each].outputs[:features] for each in ids])
    return Groups(number, clustered(now.run, rows, found)[1])


class Grouper:
    """The thread that groups; it begins when images have stopped coming, or when it is told to."""

    def __init__(self, place: Path, features: int, now: Callable[[], Snapshot], done: Callable[[], None]):
        self.place, self.features, self.now, self.done = place, features, now, done
        self.groups, self.busy = Groups.load(place), False
        self._changed, self._asked, self._closed = threading.Condition(), False, False
        self._thread = threading.Thread(target=self._work, name="grouping", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Group now."""
        with self._changed:
            self._asked = self.busy = True
            self._changed.notify()

    def look(self) -> None:
        """Group soon, if enough unknown images wait for it."""
        if self._due():
            with self._changed:
                self.busy = True
                self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _due(self) -> bool:
        now = self.now()
        return self.groups.waiting(now) > FEW * now.counts["unknown"]

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.busy or self._closed)
                while not (self._asked or self._closed) and self._changed.wait(QUIET):
                    pass
                if self._closed:
                    return
                self._asked = False
            well = self._group()
            with self._changed:
                self.busy = self._asked
            self.done()
            if well:  # else with the next images: what failed once would fail at once again
                self.look()

    def _group(self) -> bool:
        """Whether it went well; the thread lives on in any case."""
        try:
            self.groups = grouped(self.now(), self.features, self.groups.number + 1)
            self.groups.save(self.place)
        except Exception as problem:
            console.warn(f"The unknown images could not be grouped: {problem}")
            return False
        return True
