"""Images that classes were learned from after training, recognised among others by their content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from oltr.data.images import NO_FILE, UnreadableImage, read_bytes
from oltr.data.manifest import Manifest
from oltr.runs.own_data import open_for
from oltr.runs.pictures import subset
from oltr.runs.split_outputs import compute_outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

ALIKE = 0.01  # of a feature's length: images in no file that differ by less are the same


def content_digest(content: bytes) -> str:
    """By which a copy of an image is named."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def are_learned(run: TrainedRun, manifest: Manifest, split: str, rows: np.ndarray) -> np.ndarray:
    """Which of those images of a split a class was added from: n bool.

    Files are compared byte by byte, images of a pack or a dataset by their features.
    """
    if not run.changes.added or not len(rows):
        return np.zeros(len(rows), dtype=bool)
    if manifest.pack is not None or manifest.items is not None:
        return _alike(run, manifest, split, rows)
    kept = [run.path / file for each in run.changes.added for file in each.files]
    digests = {file.stem for file in kept}
    sizes = {_size(file) for file in kept}
    paths = manifest.rows(split)["path"].iloc[rows]
    return np.array([_is_one(manifest.root / path, digests, sizes) for path in paths], dtype=bool)


def _is_one(path: Path, digests: set[str], sizes: set[int | None]) -> bool:
    # No file is read whose size tells already; where a size is not known, it tells nothing.
    if None not in sizes and (size := _size(path)) is not None and size not in sizes:
        return False
    try:
        return content_digest(read_bytes(path)) in digests
    except OSError:
        raise UnreadableImage(path, NO_FILE) from None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _alike(run: TrainedRun, manifest: Manifest, split: str, rows: np.ndarray) -> np.ndarray:
    images = subset(open_for(run, manifest, [split])[split], rows)
    features = compute_outputs(run.as_trained, images).features
    learned = torch.from_numpy(np.concatenate([each.features for each in run.changes.added]))
    nearest = torch.cdist(features, learned).amin(dim=1)
    return (nearest < ALIKE * features.norm(dim=1)).numpy()
