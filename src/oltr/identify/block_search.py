"""Candidates for the nearest references of each query, a block of references at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.identify.cosine import unit_rows

Advance = Callable[[int], None]  # by so many references
QUERIES = {"cpu": 4096, "cuda": 8192}  # rows of one product
REFERENCES = {"cpu": 4096, "cuda": 32768, "faiss": 65536}  # rows of a block


class Own(NamedTuple):
    """Identities: a reference of the query's own does not count."""

    queries: np.ndarray  # Q
    references: np.ndarray  # N, −1 for those that are of no query


class Candidates(NamedTuple):
    """Of each query the largest float products, falling, and their rows (−1: none), Q×k on the host."""

    values: Tensor
    rows: Tensor

    def joined(self, other: Candidates) -> Candidates:
        """The best of both."""
        values, order = torch.cat([self.values, other.values], dim=1).topk(self.values.shape[1], dim=1)
        return Candidates(values, torch.cat([self.rows, other.rows], dim=1).gather(1, order))


def by_products(
    units: Tensor, references: Tensor, rows: np.ndarray, k: int, own: Own | None, advance: Advance
) -> Candidates:
    """The k nearest of some rows of the references."""
    device = units.device
    size, width = min(QUERIES[device.type], len(units)), min(REFERENCES[device.type], len(rows) or 1)
    space = torch.empty(size * width, dtype=units.dtype, device=device)  # of the products, used again
    best = torch.full((len(units), k), -torch.inf, dtype=units.dtype, device=device)
    named = torch.full(best.shape, -1, device=device)
    who = None if own is None else torch.from_numpy(own.queries).to(device)
    for block in _blocks(rows, width):
        part, names = _unit_block(references, block, units).T, torch.from_numpy(block).to(device)
        columns, theirs = _of_queries(own, block, device)
        for start in range(0, len(units), size):
            some = slice(start, start + size)
            shape = len(units[some]), len(names)
            near = torch.mm(units[some], part, out=space[: shape[0] * shape[1]].view(shape))
            if who is not None and len(columns):
                near[:, columns] = near[:, columns].masked_fill(who[some, None] == theirs, -torch.inf)
            _merge(best[some], named[some], near, names)
        advance(len(block))
    return Candidates(best.cpu(), named.cpu())


def _of_queries(own: Own | None, block: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """The places in a block that are of an identity of the queries, and which."""
    numbers = np.empty(0, np.int64) if own is None else own.references[block]
    columns = np.flatnonzero(numbers != -1)
    return torch.from_numpy(columns).to(device), torch.from_numpy(numbers[columns]).to(device)


def _merge(best: Tensor, rows: Tensor, near: Tensor, names: Tensor) -> None:
    """Take up what is better, in place; most queries have nothing better in most blocks."""
    better = (near.amax(dim=1) > best[:, -1]).nonzero()[:, 0]
    if len(better):
        values, places = near[better].topk(min(best.shape[1], near.shape[1]), dim=1)
        joined = torch.cat([best[better], values], dim=1)
        named = torch.cat([rows[better], names[places]], dim=1)
        values, places = joined.topk(best.shape[1], dim=1)
        named = named.gather(1, places)
        best[better], rows[better] = values, named.masked_fill(values == -torch.inf, -1)


def by_faiss(
    units: Tensor, references: Tensor, rows: np.ndarray, k: int, own: Own | None, advance: Advance
) -> Candidates:
    """The same by faiss, without an index that would hold all references once more.

    It cannot leave out pairs: references of the queries' identities are multiplied here.
    """
    try:
        import faiss
    except ModuleNotFoundError:
        raise UserError(
            "faiss is not installed.", try_this="pip install faiss-cpu, or --search blocks"
        ) from None
    theirs = np.zeros(len(rows), bool) if own is None else own.references[rows] != -1
    found = by_products(units, references, rows[theirs], k, own, advance)
    units = units.cpu()
    for block in _blocks(rows[~theirs], REFERENCES["faiss"]):
        part = _unit_block(references, block, units).numpy()
        near = faiss.knn(units.numpy(), part, min(k, len(part)), metric=faiss.METRIC_INNER_PRODUCT)
        values, places = map(torch.from_numpy, near)
        found = found.joined(Candidates(values, torch.from_numpy(block)[places]))
        advance(len(block))
    return found


def _blocks(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """`size` of the rising row numbers at a time."""
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _unit_block(references: Tensor, rows: np.ndarray, like: Tensor) -> Tensor:
    """These rows with length one, where and as another tensor is."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    if last - first > 2 * len(rows):  # far apart
        return unit_rows(references[_index(rows, references)].to(like.device), like.dtype)
    part = references[first:last].to(like.device)
    return unit_rows(part if len(part) == len(rows) else part[_index(rows - first, part)], like.dtype)


def _index(rows: np.ndarray, of: Tensor) -> Tensor:
    return torch.from_numpy(rows).to(of.device)
