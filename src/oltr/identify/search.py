"""The k largest cosines of each query among any number of references, exactly, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from oltr.identify.block_search import Candidates, Own, by_faiss, by_products
from oltr.identify.cosine import cosines, unit_rows

Search = Literal["auto", "blocks", "faiss"]
Progress = Callable[[int, int], None]

SPARE = 4  # more candidates than asked for: the exact order is made among them


def top_similarities(
    queries: Tensor,
    references: Tensor,
    k: int,
    *,
    own: tuple[np.ndarray, np.ndarray] | None = None,
    skip: np.ndarray | None = None,
    search: Search = "auto",
    device: torch.device | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """The k largest cosines of each query with the references: Q×D, N×D → Q×k float64, falling.

    `own` has an identity number for each query and each reference: those of the query's own identity are left
    out, and so are the references marked in `skip`; −1 is nobody's. Where fewer than k are left, −inf.
    `search` says by what; "auto" is faiss where it is installed and the device is a CPU.

    Candidates come from float32 products, their cosines are computed again in float64. The rounding of such
    a product and of two lengths is at most (2 D + 8) 2⁻²⁴: a query whose last candidate is nearer than that
    to the k-th cosine is searched again in float64. So the result is that of float64 throughout.
    """
    device = device or queries.device
    rows = np.arange(len(references)) if skip is None else np.flatnonzero(~skip)
    if not len(queries) or not len(rows):
        return np.full((len(queries), k), -np.inf)
    identities = None if own is None else Own(own[0], np.where(np.isin(own[1], own[0]), own[1], -1))
    done = 0

    def advance(references: int) -> None:
        nonlocal done
        done += references
        if progress is not None:
            progress(done, len(rows))

    with _full_precision():
        units = unit_rows(queries.to(device), torch.float32)
        found = _chosen(search, device)(units, references, rows, k + SPARE, identities, advance)
        exact, sure = _exact(queries, references, found, k)
        if len(again := np.flatnonzero(~sure)):
            some = queries[torch.from_numpy(again).to(queries.device)]
            units = unit_rows(some.to(device), torch.float64)
            if identities is not None:
                identities = identities._replace(queries=identities.queries[again])
            done = 0
            found = by_products(units, references, rows, k, identities, advance)
            exact[again], _ = _exact(some, references, found, k)
    return exact


def _chosen(search: Search, device: torch.device) -> Callable[..., Candidates]:
    """faiss where it was asked for, or is installed and there is no GPU."""
    if search == "auto":
        search = "faiss" if device.type == "cpu" and find_spec("faiss") is not None else "blocks"
    return by_faiss if search == "faiss" else by_products


def _exact(queries: Tensor, references: Tensor, found: Candidates, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Float64 cosines of the candidates, the k largest, and whether no other reference can be among them."""
    rough, rows = found
    some, exact = rows >= 0, torch.full(rows.shape, -torch.inf, dtype=torch.float64)
    query, place = some.nonzero(as_tuple=True)
    exact[query, place] = cosines(queries, references, query, rows[query, place])
    exact = exact.sort(dim=1, descending=True).values[:, :k]
    # What is no candidate has a float32 product of at most that of the last one; −inf: there was no other.
    others = rough[:, -1].double() + (2 * queries.shape[1] + 8) * 2.0**-24
    return exact.numpy(), (exact[:, -1] >= others).numpy() | ~some[:, -1].numpy()


@contextmanager
def _full_precision() -> Iterator[None]:
    """Float32 products in float32, whatever the process allows elsewhere."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
