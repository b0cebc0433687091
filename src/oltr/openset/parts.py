"""Functions of many rows, applied to some of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

AT_A_TIME = 4096  # rows: a float64 copy of all N×K logits may not fit


def by_parts(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """function(rows) computed in float64, some rows at a time; a row's result must be its own affair."""
    return torch.cat([function(part.double()) for part in parts(rows, AT_A_TIME)])


def parts(rows: Tensor, most: int) -> Sequence[Tensor]:
    """The rows, at most so many at a time; few stay as they are, which torch's exporter can follow."""
    return [rows] if rows.shape[0] <= most else rows.split(most)
