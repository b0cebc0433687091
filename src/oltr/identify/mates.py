"""Mates: images of the gallery with a probe's identity, less the probe's own image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

AT_A_TIME = 1 << 20  # pairs, of which few people with many images have more than memory holds


def mate_counts(probes: np.ndarray, gallery: np.ndarray, own_rows: np.ndarray) -> np.ndarray:
    """How many mates each probe has (P,), by identity numbers; below 0 is nobody."""
    known = probes >= 0
    images = np.bincount(gallery[gallery >= 0], minlength=int(probes.max(initial=0)) + 1)
    itself = (own_rows >= 0) & (gallery[own_rows] == probes)
    return np.where(known, images[np.where(known, probes, 0)] - itself, 0)


def mate_pairs(
    probes: np.ndarray, gallery: np.ndarray, own_rows: np.ndarray, at_a_time: int = AT_A_TIME
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs (probe, row of the gallery), about so many at a time."""
    order = np.argsort(probes, kind="stable")
    ordered, rows = probes[order], np.flatnonzero(gallery >= 0)
    first = np.searchsorted(ordered, gallery[rows], "left")
    number = np.searchsorted(ordered, gallery[rows], "right") - first
    ends = np.flatnonzero(np.diff(np.cumsum(number) // at_a_time)) + 1
    for part in np.split(np.arange(len(rows)), ends):
        each = number[part]
        start = np.repeat(first[part] - (np.cumsum(each) - each), each)
        query, row = order[start + np.arange(each.sum())], np.repeat(rows[part], each)
        kept = own_rows[query] != row
        yield query[kept], row[kept]
