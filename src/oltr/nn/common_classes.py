"""Which classes have images enough to stand on their own."""

from __future__ import annotations

from torch import Tensor


def common_classes(counts: Tensor, least: int) -> Tensor:
    """Marks the classes with `least` training images, or the larger half if none has so many: K → K."""
    common = counts >= least
    if not common.any():
        common[counts.topk((len(counts) + 1) // 2).indices] = True
    return common
