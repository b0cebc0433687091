"""Which classes have enough images to keep their own classifier."""

from __future__ import annotations

from torch import Tensor


def common_classes(counts: Tensor, least: int) -> Tensor:
    """Mask of the classes with at least `least` training images, or of the larger half if none has: K → K."""
    common = counts >= least
    if not common.any():
        common[counts.topk((len(counts) + 1) // 2).indices] = True
    return common
