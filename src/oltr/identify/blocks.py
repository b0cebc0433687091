"""References a block at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from oltr.identify.cosine import unit_rows


def blocks(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """`size` of the rising row numbers at a time."""
    return (rows[start : start + size] for start in range(0, len(rows), size))


def unit_block(references: Tensor, rows: np.ndarray, like: Tensor) -> Tensor:
    """These rows with length one, where and as another tensor is."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    if last - first > 2 * len(rows):  # far apart
        return unit_rows(references[_index(rows, references)].to(like.device), like.dtype)
    part = references[first:last].to(like.device)
    return unit_rows(part if len(part) == len(rows) else part[_index(rows - first, part)], like.dtype)


def _index(rows: np.ndarray, of: Tensor) -> Tensor:
    return torch.from_numpy(rows).to(of.device)
