"""Who is identified: the mates of each probe against everybody else in the gallery."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from oltr.identify.cosine import cosines
from oltr.identify.mates import mate_counts, mate_pairs
from oltr.identify.search import Search, top_similarities

Mates = Literal["nearest", "each"]
FALSE_ALARMS = (0.01, 0.001)
SAME = 1e-9  # nearer to a cosine of 1 than two photographs are
TIE = 1e-12  # similarities nearer than this are equal; the mate has to be above others and thresholds


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


def identified(
    probes: Tensor,
    gallery: Sequence[Tensor],
    people: Sequence[np.ndarray],
    own_rows: np.ndarray | None = None,
    *,
    ranks: Sequence[int] = (1, 5),
    mates: Mates = "nearest",
    search: Search = "auto",
    device: torch.device | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Identified:
    """Identify P×D probes in the parts N×D of a gallery; the first part holds the mates.

    `people` has an identity number for each probe, then for each row of each part; below 0 is nobody of the
    probes, below −1 an image without a name that is itself a probe, which is not compared with itself.
    `own_rows` tells the row of the first part that is the probe itself, −1 for none.

    "nearest": the gallery as it stands; the nearest mate has to be among the k nearest, and others of the
    probe's identity do not count. "each": MegaFace's protocol: one mate at a time is in the gallery, beside
    those who are nobody of the probes, and each is a trial.
    """
    who, own_rows = people[0], np.full(len(probes), -1) if own_rows is None else own_rows
    number, most = mate_counts(who, people[1], own_rows), min(max(ranks), sum(map(len, gallery)))
    others = np.concatenate(
        [
            top_similarities(
                probes,
                part,
                most,
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
    others = -np.sort(-others, axis=1)
    strange = number == 0
    as_if = not strange.any()
    alarms = others[:, 0] if as_if else others[strange, 0]
    thresholds = {rate: threshold_at(alarms, rate) for rate in FALSE_ALARMS}
    pairs = (
        (query, cosines(probes, gallery[0], torch.from_numpy(query), torch.from_numpy(row)).numpy())
        for query, row in mate_pairs(who, people[1], own_rows)
    )
    trials = pairs if mates == "each" else [_nearest(pairs, len(who))]
    hits = {rank: np.zeros(len(who)) for rank in ranks}
    detected = {rate: np.zeros(len(who)) for rate in FALSE_ALARMS}
    same = np.zeros(len(who), bool)
    for query, mate in trials:
        for rank, total in hits.items():
            np.add.at(total, query, rank > most or mate - TIE > others[query, rank - 1])
        for rate, total in detected.items():
            np.add.at(total, query, mate - TIE > np.maximum(others[query, 0], thresholds[rate]))
        same[query[mate > 1 - SAME]] = True
    number = number if mates == "each" else np.minimum(number, 1)
    for total in (*hits.values(), *detected.values()):
        total /= np.where(strange, np.nan, number)
    return Identified(number, hits, detected, thresholds, len(alarms), as_if, int(same.sum()))


def _nearest(pairs: Iterable[tuple[np.ndarray, np.ndarray]], probes: int) -> tuple[np.ndarray, np.ndarray]:
    """The probes that have mates, and the similarity of the nearest."""
    best = np.full(probes, -np.inf)
    for query, mate in pairs:
        np.maximum.at(best, query, mate)
    query = np.flatnonzero(best > -np.inf)
    return query, best[query]


def mean_of(values: np.ndarray, trials: np.ndarray) -> float | None:
    """The mean over the trials of some probes; None where there are none."""
    tried = trials > 0
    return float(np.average(values[tried], weights=trials[tried])) if tried.any() else None


def threshold_at(similarities: np.ndarray, rate: float) -> float:
    """The smallest similarity that at most this share of strangers (probes that are nobody) is above."""
    allowed = math.floor(rate * len(similarities) + 1e-9)
    return float(np.sort(similarities)[::-1][min(allowed, len(similarities) - 1)])
