"""k-fold cross-validation: the known images of a source, each in the test split of one of k manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from oltr.console import console
from oltr.data.assign import NEVER, assign_groups
from oltr.data.groups import Groups
from oltr.data.manifest import Manifest
from oltr.data.split import VAL_SHARE
from oltr.data.validate import natural_order
from oltr.errors import UserError
from oltr.wording import Caution, count, first_few


@dataclass(frozen=True)
class Folds:
    """One manifest per fold, and what to say of them."""

    manifests: tuple[Manifest, ...]
    notes: tuple[str, ...]


def make_folds(manifest: Manifest, folds: int, groups: Groups | None = None, seed: int = 0) -> Folds:
    """k folds with the classes spread evenly, groups whole; open images are in every fold's open split.

    A class whose images are one group, or one image, is trained on in every fold and never tested.
    """
    if folds < 2:
        raise UserError(f"--folds {folds} is too small.", try_this="--folds 5")
    known = np.flatnonzero((manifest.table["split"] != "open").to_numpy())
    labels = manifest.table["label"].to_numpy()[known]
    names = known.astype(str).astype(object) if groups is None else groups.names[known]
    lone = _lone_classes(labels, names)
    kept = np.isin(names, names[np.isin(labels, list(lone))])
    free = np.flatnonzero(~kept)
    what = "image" if groups is None else "group"
    if (number := len(np.unique(names[free]))) < folds:
        raise UserError(
            f"{folds} folds need as many {what}s that can be tested, and there are {number}.",
            "A class's only group stays in training." if groups is not None else "",
            "fewer folds",
        )
    fold_of = np.full(len(known), -1)
    fold_of[free] = assign_groups(labels[free], names[free], [1 / folds] * folds, _in_one_fold, seed)
    made = []
    with console.progress("making folds", "folds") as progress:
        for fold in range(folds):
            splits = manifest.table["split"].to_numpy(copy=True)
            splits[known] = _fold_splits(labels, names, fold_of == fold, folds, seed + fold)
            made.append(manifest.with_splits(splits))
            progress(fold + 1, folds)
    return Folds(tuple(made), tuple(_notes(manifest, folds, groups, labels, kept)))


def _fold_splits(
    labels: np.ndarray, names: np.ndarray, tested: np.ndarray, folds: int, seed: int
) -> np.ndarray:
    """train, val or test for each known image; val is a fifth of all, taken from the rest."""
    rest = np.flatnonzero(~tested)
    share = VAL_SHARE / (1 - 1 / folds)
    val = assign_groups(labels[rest], names[rest], (1 - share, share), _trained, seed) == 1
    splits = np.where(tested, "test", "train").astype(object)
    splits[rest[val]] = "val"
    return splits


def _lone_classes(labels: np.ndarray, names: np.ndarray) -> set[str]:
    """Classes with all images in one group: tested, they would have no training images."""
    groups = pd.Series(names).groupby(labels).nunique()
    return set(groups.index[groups == 1])


def _notes(
    manifest: Manifest, folds: int, groups: Groups | None, labels: np.ndarray, kept: np.ndarray
) -> list[str]:
    """What was done; `kept` are the images that are always trained on."""
    notes = manifest.notes_but_splits()
    grouped = "" if groups is None else f" by {groups.by}, every group whole"
    notes.append(
        f"{folds} folds of {count(len(labels), 'image')}{grouped}: each fold is the test split once."
    )
    if not manifest.split_made:
        pooled = ", ".join(f"{split} {size:,}" for split, size in manifest.sizes().items() if split != "open")
        notes.append(Caution(f"The source's own splits are pooled: {pooled}."))
    sizes = pd.Series(labels).value_counts()
    if small := natural_order(set(sizes.index[sizes < folds])):
        text = f"{count(len(small), 'class')} with fewer than {folds} images, not tested in every fold: "
        notes.append(Caution(f"{text}{first_few(small)}."))
    if untested := natural_order(set(labels[kept]) - set(labels[~kept])):
        why = "one image" if groups is None else "one group"
        text = f"{count(len(untested), 'class')} never tested, for training needs their {why}: "
        notes.append(Caution(f"{text}{first_few(untested)}."))
    if groups is not None and kept.any():
        notes.append(f"{count(int(kept.sum()), 'image')} in groups that training always needs.")
    return notes


def _in_one_fold(counts: Sequence[int]) -> float:
    """A class that lies in one fold only would there be tested untrained."""
    return NEVER * (sum(map(bool, counts)) == 1)


def _trained(counts: Sequence[int]) -> float:
    """A class must be trained; then it should be validated."""
    train, val = counts
    return NEVER * (not train) + 5.0 * (not val)
