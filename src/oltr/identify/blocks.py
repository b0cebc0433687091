"""References in blocks, each with the pairs of query and reference that do not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oltr.identify.cosine import unit_rows


class Block(NamedTuple):
    """Rows of the references, and pairs (query, place in the block) that do not count."""

    rows: np.ndarray
    queries: np.ndarray
    places: np.ndarray

    def of(self, references: Tensor, like: Tensor) -> Tensor:
        """Its references with length one, where and as the queries are."""
        first, last = int(self.rows[0]), int(self.rows[-1]) + 1
        part = references[first:last].to(like.device)
        if len(self.rows) < last - first:
            part = part[torch.from_numpy(self.rows - first).to(like.device)]
        return unit_rows(part, like.dtype)


@dataclass(frozen=True, eq=False)
class Blocks:
    """`size` rows at a time of N references, less those to skip and those of a query's own identity."""

    references: int
    size: int
    own: tuple[np.ndarray, np.ndarray] | None = None  # identity of each query and of each reference
    skip: np.ndarray | None = None  # N

    def __len__(self) -> int:
        return -(-self.references // self.size)

    def __iter__(self) -> Iterator[Block]:
        order = np.argsort(self.own[0], kind="stable") if self.own is not None else None
        for start in range(0, self.references, self.size):
            rows = np.arange(start, min(start + self.size, self.references))
            if self.skip is not None:
                rows = rows[~self.skip[rows]]
            if not len(rows):
                continue
            if self.own is None:
                yield Block(rows, np.empty(0, np.int64), np.empty(0, np.int64))
            else:
                yield Block(rows, *same_identity(self.own[0], self.own[1][rows], order))

    def among(self, queries: np.ndarray) -> Blocks:
        """The same for some of the queries."""
        return self if self.own is None else replace(self, own=(self.own[0][queries], self.own[1]))


def same_identity(
    queries: np.ndarray, references: np.ndarray, order: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (query, reference) of one identity; −1 is of none. `order` sorts the queries."""
    order = np.argsort(queries, kind="stable") if order is None else order
    ordered, known = queries[order], np.flatnonzero(references != -1)
    first = np.searchsorted(ordered, references[known], "left")
    number = np.searchsorted(ordered, references[known], "right") - first
    before = np.cumsum(number) - number
    return order[np.repeat(first - before, number) + np.arange(number.sum())], np.repeat(known, number)
