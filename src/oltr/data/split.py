"""The split of data that have none, class by class, fixed by a seed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from oltr.wording import count

VAL_SHARE = TEST_SHARE = 0.2
MADE = "Split made for you"  # how the note on it begins

Flat = Literal["split", "train", "test"]  # what becomes of data without splits


def split_of(labels: Sequence[str], flat: Flat = "split", seed: int = 0) -> list[str]:
    """The split of each image of known class; a class keeps its own when others come or go."""
    if flat != "split":
        return [flat] * len(labels)
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    splits = np.full(len(labels), "train", dtype=object)
    for label, own in rows.items():
        order = np.random.default_rng([seed, zlib.crc32(label.encode())]).permutation(len(own))
        tests = max(round(TEST_SHARE * len(own)), 1) if len(own) > 1 else 0
        vals = max(round(VAL_SHARE * len(own)), 1) if len(own) > 2 else 0
        drawn = np.array(own)[order]
        splits[drawn[:tests]] = "test"
        splits[drawn[tests : tests + vals]] = "val"
    return splits.tolist()


def split_notes(what: str, images: int, flat: Flat = "split", seed: int = 0) -> list[str]:
    """What to say of it; `what` is the data that have no splits."""
    if flat == "split":
        return [
            f"{MADE}: about 60 % train, 20 % val, 20 % test of each class "
            f"(seed {seed}), at least one in train."
        ]
    if flat == "test":
        return [f"{what} has no splits: {count(images, 'image')} of known classes, all for testing."]
    return []
