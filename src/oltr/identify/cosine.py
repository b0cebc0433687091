"""Cosines in float64, and rows of length one."""

from __future__ import annotations

import torch
from torch import Tensor

AT_A_TIME = 8192  # pairs
SAFE = 1e-12, 1e12  # lengths whose squares float32 can hold


def unit_rows(features: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows divided by their length; a row of zeros stays one.

    In float32 the length is rounded too, by at most (D / 2 + 1) 2⁻²⁴ of it: that is three times as quick.
    """
    if features.dtype == dtype == torch.float32:
        length = torch.linalg.vector_norm(features, dim=1, keepdim=True)
        if SAFE[0] < length.min() and length.max() < SAFE[1]:
            return features / length
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
