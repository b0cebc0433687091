"""Images that look alike, among a hundred thousand or more: their pairs, and the clusters that these form."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from oltr.data.looks import THUMBNAIL, Look, similarity

DISTANCE = 11  # bits of 64 that may differ: most copies with 4 % cut off at each side are within
SIMILARITY = 0.9  # correlation of the thumbnails, which tells copies from pictures of the same outline
MOST_PAIRS = 1_000_000  # a film of one scene has more, and nobody reads them
AT_A_TIME = 2**18  # candidates compared at once

_PARTS, _PART_BITS = 4, 16
# Hashes that differ in at most 11 bits differ in at most 2 bits of one of their four parts.
_FLIPS = [sum(1 << bit for bit in bits) for n in range(3) for bits in combinations(range(_PART_BITS), n)]
_ONES = np.array([value.bit_count() for value in range(2**_PART_BITS)], dtype=np.uint8)


class NearPair(NamedTuple):
    """Two images, by number, and how near they are: bits of the hash that differ, and correlation."""

    first: int
    second: int
    distance: int
    similarity: float


@dataclass(frozen=True)
class NearDuplicates:
    """What was found among `images` images."""

    images: int
    copies: list[list[int]]  # images that are the same to the eye; most lists hold one
    alike: list[NearPair]  # pairs of these lists, by number
    complete: bool  # False: there are more than MOST_PAIRS, and the others were not looked for

    def pairs(self) -> list[NearPair]:
        """Pairs of images, first < second, in order; at most MOST_PAIRS."""
        same = (NearPair(a, b, 0, 1.0) for rows in self.copies for a, b in combinations(rows, 2))
        near = (
            NearPair(min(a, b), max(a, b), pair.distance, pair.similarity)
            for pair in self.alike
            for a, b in product(self.copies[pair.first], self.copies[pair.second])
        )
        return sorted([*islice(same, MOST_PAIRS), *islice(near, MOST_PAIRS)])[:MOST_PAIRS]

    def clusters(self) -> np.ndarray:
        """The cluster of each image (n,), numbered from 0; most images are their own."""
        edges = [(rows[0], row) for rows in self.copies for row in rows[1:]]
        edges += [(self.copies[pair.first][0], self.copies[pair.second][0]) for pair in self.alike]
        first, second = np.array(edges, dtype=np.int64).reshape(-1, 2).T
        joined = coo_matrix((np.ones(len(edges)), (first, second)), shape=(self.images, self.images))
        return connected_components(joined, directed=False)[1]


def find_near_duplicates(
    looks: Sequence[Look | None], progress: Callable[[int, int], None] | None = None
) -> NearDuplicates:
    """All pairs that look alike; pictures of one plain colour, of which any two would, are left out."""
    by_look: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for row, look in enumerate(looks):
        if look is not None and not look.plain:
            digest = hashlib.blake2b(look.thumbnail.tobytes(), digest_size=16).digest()
            by_look[look.hash, digest].append(row)
    copies = list(by_look.values())
    distinct = [look for rows in copies if (look := looks[rows[0]]) is not None]
    hashes = np.array([look.hash for look in distinct], dtype=np.uint64)
    thumbnails = np.array([look.thumbnail for look in distinct], dtype=np.uint8).reshape(-1, THUMBNAIL)
    found: dict[tuple[int, int], NearPair] = {}
    for first, second in _candidates(hashes, progress):
        distance = _ones(hashes[first] ^ hashes[second])
        near = distance <= DISTANCE
        first, second, distance = first[near], second[near], distance[near]
        alike = similarity(thumbnails[first], thumbnails[second])
        kept = np.flatnonzero(alike >= SIMILARITY)
        for a, b, bits, value in zip(
            first[kept].tolist(),
            second[kept].tolist(),
            distance[kept].tolist(),
            alike[kept].tolist(),
            strict=True,
        ):
            found[a, b] = NearPair(a, b, bits, round(value, 3))
        if len(found) > MOST_PAIRS:
            break
    return NearDuplicates(len(looks), copies, list(found.values()), len(found) <= MOST_PAIRS)


def _candidates(
    hashes: np.ndarray, progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hashes, first < second, that differ in at most two bits of one part; a pair may come twice."""
    steps = _PARTS * len(_FLIPS)
    for part in range(_PARTS):
        keys = (hashes >> np.uint64(part * _PART_BITS)).astype(np.uint16).astype(np.int64)
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange(2**_PART_BITS + 1))
        for number, flip in enumerate(_FLIPS, start=1):
            sought = keys ^ flip
            sizes = starts[sought + 1] - starts[sought]
            for rows in _portions(sizes):
                size = sizes[rows]
                first = np.repeat(rows, size)
                within = np.arange(len(first)) - np.repeat(np.cumsum(size) - size, size)
                second = order[np.repeat(starts[sought[rows]], size) + within]
                later = first < second
                yield first[later], second[later]
            if progress is not None:
                progress(part * len(_FLIPS) + number, steps)


def _portions(sizes: np.ndarray) -> Iterator[np.ndarray]:
    """Row numbers with partners, so many at a time that their candidates fit in memory."""
    rows = np.flatnonzero(sizes)
    portion = np.cumsum(sizes[rows]) // AT_A_TIME
    yield from np.split(rows, np.flatnonzero(np.diff(portion)) + 1) if len(rows) else ()


def _ones(values: np.ndarray) -> np.ndarray:
    """Bits set in each 64-bit number."""
    return _ONES[values.view(np.uint16)].reshape(-1, _PARTS).sum(axis=1, dtype=np.int64)
