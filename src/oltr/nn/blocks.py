"""When a batch × classes tensor is computed whole, and in which blocks of classes otherwise."""

from __future__ import annotations

# Elements of the largest batch × classes tensor that is computed whole: 128 MiB of float32.
LARGEST = 2**25


def in_one_piece(batch: int, num_classes: int) -> bool:
    """Whether a batch × classes tensor is computed whole; from shapes alone, without synchronisation."""
    return batch * num_classes <= LARGEST


def class_blocks(batch: int, num_classes: int, dims: int) -> list[slice]:
    """Slices that cover the classes in order: one if they are computed whole, else so many that neither
    batch × slice nor slice × dims exceeds `LARGEST`.
    """
    size = num_classes if in_one_piece(batch, num_classes) else max(LARGEST // max(batch, dims), 1)
    return [slice(start, min(start + size, num_classes)) for start in range(0, num_classes, size)]
