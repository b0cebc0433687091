"""Who is identified: the mates of each probe against everybody else in the gallery."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from oltr.identify.blocks import same_identity
from oltr.identify.cosine import cosines
from oltr.identify.search import Search, top_similarities

Mates = Literal["nearest", "each"]
FALSE_ALARMS = (0.01, 0.001)
TIE = 1e-12  # similarities nearer than this are equal, and what is equal stands before the mate


@dataclass(frozen=True, eq=False)
class Identified:
    """Of each of P probes, the share of its mates that are found; NaN for probes without a mate."""

    hits: dict[int, np.ndarray]  # by rank k: the mate is among the k nearest
    detected: dict[float, np.ndarray]  # by rate of false alarms: nearest, and above the threshold
    thresholds: dict[float, float]
    strangers: int  # probes on which false alarms are counted
    as_if: bool  # whether these are probes with mates, which were left out of the gallery


def identified(
    probes: Tensor,
    gallery: Sequence[Tensor],
    people: Sequence[np.ndarray],
    *,
    self_rows: np.ndarray | None = None,
    ranks: Sequence[int] = (1, 5),
    mates: Mates = "nearest",
    search: Search = "blocks",
    device: torch.device | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Identified:
    """Identify P×D probes in the parts N×D of a gallery; the first part holds the mates.

    `people` has an identity number for each probe, then for each row of each part; −1 is nobody of the
    probes. `self_rows` is the row of the first part that is the probe's own image, −1 for none.

    "nearest": the gallery as it stands; the nearest mate has to be among the k nearest, and others of the
    probe's identity do not count. "each": MegaFace's protocol: one mate at a time is in the gallery, beside
    those who are nobody of the probes; a probe's value is the mean over its mates.
    """
    who, pairs = people[0], same_identity(people[0], people[1])
    if self_rows is not None:
        kept = self_rows[pairs[0]] != pairs[1]
        pairs = pairs[0][kept], pairs[1][kept]
    query = torch.from_numpy(pairs[0])
    mate = cosines(probes, gallery[0], query, torch.from_numpy(pairs[1])).numpy()
    query_of, number = pairs[0], np.bincount(pairs[0], minlength=len(who))
    if mates == "nearest":
        best = np.full(len(who), -np.inf)
        np.maximum.at(best, query_of, mate)
        query_of = np.flatnonzero(number)
        mate, number = best[query_of], np.minimum(number, 1)
    others = np.concatenate(
        [
            top_similarities(
                probes,
                part,
                max(ranks),
                own=None if mates == "each" else (who, numbers),
                skip=numbers >= 0 if mates == "each" else None,
                search=search,
                device=device,
                progress=progress,
            )
            for part, numbers in zip(gallery, people[1:], strict=True)
        ],
        axis=1,
    )
    others = -np.sort(-others, axis=1)[:, : max(ranks)]

    def share(found: np.ndarray) -> np.ndarray:
        total = np.bincount(query_of, found, minlength=len(who))
        return np.divide(total, number, out=np.full(len(who), np.nan), where=number > 0)

    before = {rank: mate - TIE > others[query_of, rank - 1] for rank in {1, *ranks}}
    strange = number == 0
    as_if = not strange.any()
    alarms = others[:, 0] if as_if else others[strange, 0]
    thresholds = {rate: threshold_at(alarms, rate) for rate in FALSE_ALARMS}
    return Identified(
        {rank: share(before[rank]) for rank in ranks},
        {rate: share(before[1] & (mate > limit)) for rate, limit in thresholds.items()},
        thresholds,
        len(alarms),
        as_if,
    )


def threshold_at(similarities: np.ndarray, rate: float) -> float:
    """The smallest similarity that at most this share of strangers (probes that are nobody) is above."""
    allowed = math.floor(rate * len(similarities) + 1e-9)
    return float(np.sort(similarities)[::-1][min(allowed, len(similarities) - 1)])
