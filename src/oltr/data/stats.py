"""Counts that describe a dataset; no image is opened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.metrics.shots import GROUPS, shot_sizes


def stats(manifest: Manifest, shots: str = "standard") -> dict[str, Any]:
    """Images per split, classes, largest and smallest class, classes per shot group.

    Without a train split the training counts are not known: sizes and groups are then 0.
    """
    facts = stats_from_counts(manifest.train_counts(), shots)
    facts["images"] = manifest.sizes()
    if not manifest.sizes()["train"]:
        facts["shots"] = dict.fromkeys(GROUPS, 0)
    return facts


def stats_from_counts(counts: Sequence[int] | np.ndarray, shots: str = "standard") -> dict[str, Any]:
    """The same facts where only the training images per class are known."""
    counts = np.asarray(counts, dtype=np.int64)
    return {
        "images": {"train": int(counts.sum()), "val": 0, "test": 0, "open": 0},
        "classes": len(counts),
        "max": int(counts.max(initial=0)),
        "min": int(counts.min()) if len(counts) else 0,
        "shots": shot_sizes(counts, shots),
    }


def read_counts(path: str | Path) -> np.ndarray:
    """Training images per class from a JSON array of whole numbers."""
    try:
        counts = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"The counts file {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UserError(f"The counts file {path} is not JSON: {error}.", try_this="[120, 33, 5]") from None
    if not isinstance(counts, list) or not counts:
        raise UserError(f"The counts file {path} holds no list of numbers.", try_this="[120, 33, 5]")
    for position, value in enumerate(counts):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UserError(
                f"Entry {position} of {path} is {value!r}.", "A class has a whole number of training images."
            )
    return np.asarray(counts, dtype=np.int64)
