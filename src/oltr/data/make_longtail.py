"""Any labelled set made long-tailed and open: the paper's recipe on the user's own images."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from oltr.data.longtail import exponential_counts, pareto_counts
from oltr.data.manifest import Manifest
from oltr.data.validate import SPLITS
from oltr.errors import UserError
from oltr.wording import count, first_few

# Where the source has no test or val images, each class gives this share of what the smallest class has,
# and at most what ImageNet-LT has per class.
TEST_SHARE, MOST_TEST = 0.2, 50
VAL_SHARE, MOST_VAL = 0.1, 20

Profile = Callable[[int], np.ndarray]  # size of the largest class -> images per class, decreasing


def make_longtail(
    manifest: Manifest,
    *,
    alpha: float | None = None,
    imbalance: float | None = None,
    largest: int | None = None,
    smallest: int = 1,
    open_classes: float = 0,
    seed: int = 0,
) -> Manifest:
    """A long-tailed, open subset of a labelled set.

    Counts follow Pareto(`alpha`) from `largest` to `smallest`, or n_max · `imbalance`^(−c/(K−1)) and at least
    `smallest`; classes with more images get more. `largest` is the most the images allow unless given.
    `open_classes` (a share below 1, or a number) are left out of training and make the open split.
    """
    _check_options(alpha, imbalance, largest, smallest, seed)
    if not manifest.sizes()["train"]:
        raise UserError("A long-tailed set needs a train split to draw from.")
    rng = np.random.default_rng(seed)
    rows = {split: manifest.rows(split) for split in SPLITS}
    known, opened = _choose_open(manifest.classes, open_classes, rng)
    of_class = rows["train"].groupby("label").indices
    pools = {name: rng.permutation(of_class[name]) for name in known}
    order = sorted(known, key=lambda name: -len(pools[name]))  # ties stay in the order drawn

    # Test images are set aside first, as many for every class; val takes unused training images.
    fewest = len(pools[order[-1]])
    aside = 0 if len(rows["test"]) else _share(fewest, TEST_SHARE, MOST_TEST)
    spare = 0 if len(rows["val"]) else _share(fewest, VAL_SHARE, MOST_VAL)

    def profile(top: int) -> np.ndarray:
        if imbalance is None:
            return pareto_counts(len(order), top, smallest, alpha or 0.0)
        return np.maximum(exponential_counts(len(order), top, imbalance), smallest)

    counts = _fitting_counts(profile, order, [len(pools[name]) - aside for name in order], largest, smallest)
    parts = [rows[split][rows[split]["label"].isin(set(known))] for split in ("val", "test")]
    for name, size in zip(order, counts, strict=True):
        drawn = np.split(pools[name], np.cumsum([aside, size, spare]))
        for split, positions in zip(("test", "train", "val"), drawn, strict=False):
            parts.append(rows["train"].iloc[np.sort(positions)].assign(split=split))
    table = pd.concat([*parts, *_open_rows(rows, set(opened))], ignore_index=True)
    notes = [f"Open classes: {count(len(opened), 'class')} drawn with seed {seed}."] if opened else []
    if aside:
        notes.append(f"Test images: {aside} of each class set aside from its training images.")
    if spare:
        notes.append(f"Val images: up to {spare} of each class from what training left over.")
    ordered = _ordered(table, manifest.classes)
    return Manifest.build(ordered, manifest.root, tuple(notes), items=manifest.items)


def _check_options(
    alpha: float | None, imbalance: float | None, largest: int | None, smallest: int, seed: int
) -> None:
    if seed < 0:
        raise UserError(f"The seed {seed} is negative.", try_this="a seed of 0 or more")
    if (alpha is None) == (imbalance is None):
        raise UserError(
            "A long tail needs one profile: a Pareto alpha or an imbalance.",
            try_this="--alpha 6 or --imbalance 100",
        )
    if smallest < 1 or (largest is not None and largest < smallest):
        above = f" and --max {largest}" if largest is not None else ""
        raise UserError(f"--min {smallest}{above} is out of range.", "Needed: 1 ≤ min ≤ max.")


def _choose_open(
    classes: tuple[str, ...], open_classes: float, rng: np.random.Generator
) -> tuple[list[str], list[str]]:
    """Known and open classes, both in a drawn order."""
    if not 0 <= open_classes < math.inf or (open_classes >= 1 and open_classes != int(open_classes)):
        raise UserError(
            f"--open {open_classes} is out of range.", try_this="a share below 1 or a whole number"
        )
    names = [classes[position] for position in rng.permutation(len(classes))]
    number = int(open_classes)
    if 0 < open_classes < 1:
        number = max(round(open_classes * len(names)), 1)
    if number >= len(names):
        raise UserError(
            f"With {number} of {count(len(names), 'class')} open there is nothing left to train on.",
            try_this="a smaller --open",
        )
    return names[number:], names[:number]


def _fitting_counts(
    profile: Profile, order: list[str], room: list[int], largest: int | None, smallest: int
) -> np.ndarray:
    """Training images per class, or the error that says which classes lack images."""
    possible = _largest_possible(profile, room, smallest)
    counts = profile(largest or possible or smallest)
    lacking = np.flatnonzero(counts > np.array(room))
    if len(lacking):
        named = first_few(f"{order[c]} (has {room[c]}, needs {counts[c]})" for c in lacking)
        raise UserError(
            f"Too few images in {count(len(lacking), 'class')}: {named}.",
            try_this=f"--max {possible} or less"
            if possible
            else "a smaller --min, or leave those classes out",
        )
    return counts


def _largest_possible(profile: Profile, room: list[int], smallest: int) -> int:
    """The largest size of the first class at which every class has enough images, by bisection; 0: none."""
    low, high = smallest - 1, max(room[0], smallest - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if (profile(middle) <= np.array(room)).all():
            low = middle
        else:
            high = middle - 1
    return low if low >= smallest else 0


def _share(images: int, share: float, most: int) -> int:
    return min(max(round(share * images), 1), most)


def _open_rows(rows: dict[str, pd.DataFrame], opened: set[str]) -> list[pd.DataFrame]:
    """Open images: those the source had, and the open classes' test images, or all where it has no test."""
    own = {split: rows[split][rows[split]["label"].isin(opened)] for split in ("train", "val", "test")}
    parts = [own["test"]] if len(own["test"]) else list(own.values())
    return [rows["open"], *(part.assign(split="open") for part in parts)]


def _ordered(table: pd.DataFrame, classes: tuple[str, ...]) -> pd.DataFrame:
    """Rows by split, then by class, as a folder would list them."""
    split = pd.Index(SPLITS).get_indexer(pd.Index(table["split"]))
    label = pd.Index(classes).get_indexer(pd.Index(table["label"]))
    return table.iloc[np.lexsort((np.arange(len(table)), label, split))]
