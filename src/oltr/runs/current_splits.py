"""A source under the classes that a run knows now: what is a test image, and what is open."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from oltr.data.label_spelling import alike
from oltr.data.manifest import Manifest
from oltr.metrics.labels import OPEN
from oltr.runs.learned_images import are_learned

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

LEFT_OUT = "left out"  # in the place of a split; the row stays, for a pack has its pixels in the same place
LEARNED = -2


def current_classes(run: TrainedRun, manifest: Manifest, own: bool) -> dict[str, np.ndarray]:
    """By split the class number of each image now, n int64; `OPEN`: none, `LEARNED`: it was learned from it.

    In the run's own data a known label is that of training, whatever it is called now; elsewhere a name known
    now comes first. An open image of a class that has a name now is of that class.
    """
    changes, names = run.changes, {name: number for number, name in enumerate(run.class_names)}
    taught = np.append(np.arange(len(names)) >= len(changes.kept), False)  # the last is that of −1
    found = {}
    for split in ("train", "val", "test", "open"):
        by_label = changes.numbers() if split in ("train", "val") else changes.numbers_by_label()
        trained = dict(zip(changes.trained, by_label.tolist(), strict=True))
        labels = manifest.rows(split)["label"]
        if split == "open":  # nobody had to spell these as the class was called later
            known, labels = {alike(name): number for name, number in names.items()}, labels.map(alike)
        else:
            known = names | trained if own else trained | names
        numbers = np.array([known.get(label, OPEN) for label in labels], dtype=np.int64)
        if split in ("test", "open"):
            rows = np.flatnonzero(taught[numbers])
            numbers[rows[are_learned(run, manifest, split, rows)]] = LEARNED
        found[split] = numbers
    return found


def current_manifest(run: TrainedRun, manifest: Manifest, classes: dict[str, np.ndarray]) -> Manifest:
    """The same images under the splits and names of now.

    Test images of no class known now are open, open images of one are for testing. Left out are images that
    a class was learned from after training, and training and validation images of removed classes.
    """
    names = np.array([*run.class_names, ""], dtype=object)
    splits, labels = (
        manifest.table[column].to_numpy(dtype=object, copy=True) for column in ("split", "label")
    )
    for split, numbers in classes.items():
        rows = manifest.positions(split)
        labels[rows] = np.where(numbers >= 0, names[numbers], labels[rows])
        if split in ("test", "open"):
            splits[rows] = np.select([numbers >= 0, numbers == OPEN], ["test", "open"], LEFT_OUT)
        else:
            splits[rows[numbers < 0]] = LEFT_OUT
    table = manifest.table.assign(split=splits, label=labels)
    return dataclasses.replace(manifest, table=table, classes=tuple(run.class_names))
