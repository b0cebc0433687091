"""Cosines in float64, and rows of length one."""

from __future__ import annotations

import torch
from torch import Tensor

AT_A_TIME = 8192  # pairs


def unit_rows(features: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows divided by their length in float64, then rounded; a row of zeros stays one."""
    doubled = features.double()
    length = torch.linalg.vector_norm(doubled, dim=1, keepdim=True)
    return (doubled / torch.where(length > 0, length, 1.0)).to(dtype)


def cosines(left: Tensor, right: Tensor, left_rows: Tensor, right_rows: Tensor) -> Tensor:
    """The float64 cosine of each pair of rows, on the host (n,)."""
    found = torch.empty(len(left_rows), dtype=torch.float64)
    for start in range(0, len(left_rows), AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        a = unit_rows(left[left_rows[part].to(left.device)], torch.float64)
        b = unit_rows(right[right_rows[part].to(right.device)], torch.float64)
        found[part] = (a * b.to(a.device)).sum(dim=1).cpu()
    return found
