"""Candidates for the nearest references of each query, a block of references at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.identify.blocks import Blocks

Progress = Callable[[int, int], None]
QUERIES = {"cpu": 4096, "cuda": 8192}  # rows of one product


def by_products(
    units: Tensor, references: Tensor, blocks: Blocks, k: int, progress: Progress | None
) -> tuple[Tensor, Tensor]:
    """The k largest products and their rows (−1: none), Q×k on the host."""
    device, size = units.device, min(QUERIES[units.device.type], len(units))
    space = torch.empty(size * blocks.size, dtype=units.dtype, device=device)  # of the products, used again
    best = torch.full((len(units), k), -torch.inf, dtype=units.dtype, device=device)
    rows = torch.full(best.shape, -1, device=device)
    for number, block in enumerate(blocks):
        part, names = block.of(references, units).T, torch.from_numpy(block.rows).to(device)
        for start in range(0, len(units), size):
            some = slice(start, start + size)
            shape = len(units[some]), len(names)
            near = torch.mm(units[some], part, out=space[: shape[0] * shape[1]].view(shape))
            here = (block.queries >= start) & (block.queries < start + len(near))
            if here.any():
                left_out = [torch.from_numpy(each[here]).to(device) for each in (block.queries, block.places)]
                near[left_out[0] - start, left_out[1]] = -torch.inf
            _merge(best[some], rows[some], near, names)
        if progress is not None:
            progress(number + 1, len(blocks))
    return best.cpu(), rows.cpu()


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
    units: Tensor, references: Tensor, blocks: Blocks, k: int, progress: Progress | None
) -> tuple[Tensor, Tensor]:
    """The same by faiss, without an index that would hold all references once more."""
    try:
        import faiss
    except ModuleNotFoundError:
        raise UserError(
            "faiss is not installed.", try_this="pip install faiss-cpu, or --search blocks"
        ) from None
    units = units.cpu()
    best, rows = torch.full((len(units), k), -torch.inf), torch.full((len(units), k), -1)
    for number, block in enumerate(blocks):
        part = block.of(references, units)
        more = int(np.bincount(block.queries).max(initial=0))  # rows that do not count may be the nearest
        wanted = min(k + more, len(part))
        near, places = (
            torch.from_numpy(found)
            for found in faiss.knn(units.numpy(), part.numpy(), wanted, metric=faiss.METRIC_INNER_PRODUCT)
        )
        if len(block.queries):
            pairs = torch.from_numpy(block.queries * len(part) + block.places)
            near[torch.isin(torch.arange(len(units))[:, None] * len(part) + places, pairs)] = -torch.inf
        values, order = torch.cat([best, near], dim=1).topk(k, dim=1)
        named = torch.cat([rows, torch.from_numpy(block.rows)[places]], dim=1).gather(1, order)
        best, rows = values, named.masked_fill(values == -torch.inf, -1)
        if progress is not None:
            progress(number + 1, len(blocks))
    return best, rows
