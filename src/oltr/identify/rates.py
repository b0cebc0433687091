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
SAME = 1e-9  # nearer to a cosine of 1 than two photographs are
TIE = 1e-12  # similarities nearer than this are equal, and what is equal stands before the mate


@dataclass(frozen=True, eq=False)
class Identified:
    """Of each of P probes, the share of its mates that are found; NaN for probes without a mate."""

    trials: np.ndarray  # mates that are looked for
    hits: dict[int, np.ndarray]  # by rank k: the mate is among the k nearest
    detected: dict[float, np.ndarray]  # by rate of false alarms: nearest, and above the threshold
    thresholds: dict[float, float]
    strangers: int  # probes on which false alarms are counted
    as_if: bool  # whether these are probes with mates, which were left out of the gallery
    same: int  # probes with a mate whose feature is their own


def mate_pairs(
    probes: np.ndarray, gallery: np.ndarray, own_rows: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (probe, row of the gallery) of one identity, less a probe's own image (−1: not there)."""
    query, row = same_identity(probes, gallery)
    kept = np.ones(len(query), bool) if own_rows is None else own_rows[query] != row
    return query[kept], row[kept]


def identified(
    probes: Tensor,
    gallery: Sequence[Tensor],
    people: Sequence[np.ndarray],
    pairs: tuple[np.ndarray, np.ndarray],
    *,
    ranks: Sequence[int] = (1, 5),
    mates: Mates = "nearest",
    search: Search = "auto",
    device: torch.device | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Identified:
    """Identify P×D probes in the parts N×D of a gallery; the first part holds the mates, `pairs` tells them.

    `people` has an identity number for each probe, then for each row of each part; below 0 is nobody of the
    probes, below −1 an image without a name that is itself a probe, which is not compared with itself.

    "nearest": the gallery as it stands; the nearest mate has to be among the k nearest, and others of the
    probe's identity do not count. "each": MegaFace's protocol: one mate at a time is in the gallery, beside
    those who are nobody of the probes, and each is a trial.
    """
    who, query_of = people[0], pairs[0]
    mate = cosines(probes, gallery[0], *map(torch.from_numpy, pairs)).numpy()
    number = np.bincount(query_of, minlength=len(who))
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
                own=(who, numbers),
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
        number,
        {rank: share(before[rank]) for rank in ranks},
        {rate: share(before[1] & (mate > limit)) for rate, limit in thresholds.items()},
        thresholds,
        len(alarms),
        as_if,
        len(np.unique(query_of[mate > 1 - SAME])),
    )


def mean_of(values: np.ndarray, trials: np.ndarray) -> float | None:
    """The mean over the trials of some probes; None where there are none."""
    tried = trials > 0
    return float(np.average(values[tried], weights=trials[tried])) if tried.any() else None


def threshold_at(similarities: np.ndarray, rate: float) -> float:
    """The smallest similarity that at most this share of strangers (probes that are nobody) is above."""
    allowed = math.floor(rate * len(similarities) + 1e-9)
    return float(np.sort(similarities)[::-1][min(allowed, len(similarities) - 1)])
