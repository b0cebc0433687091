"""The distance to the k-th nearest training image."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.openset.parts import parts
from oltr.openset.scores import FittedScore, ScoreInfo, register

MOST_NEIGHBOURS = 50
QUERIES, NEIGHBOURS = 1024, 16384  # rows of the two sides of a matrix product


class _Neighbours(NamedTuple):
    directions: Tensor  # N×D float32, training features of unit length
    k: int


@register
class NearestNeighbours(FittedScore[_Neighbours]):
    """‖z − z_(k)‖ with z = v_direct / ‖v_direct‖ and z_(k) its k-th nearest among those of training.

    k is 50, or as many as the smallest class has training images: with more, an image of a rare class
    would be measured against other classes.
    """

    name = "knn"
    info = ScoreInfo(
        title="k-nearest-neighbour distance",
        summary="The distance of the normalised feature to its k-th nearest training feature",
        paper="Sun et al., Out-of-Distribution Detection with Deep Nearest Neighbors, ICML 2022",
        year=2022,
        changes="k is at most the number of training images of the smallest class, because of rare classes",
    )
    higher_is_known = False

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> _Neighbours:
        counts = labels.bincount()
        k = min(MOST_NEIGHBOURS, int(counts[counts > 0].min()))
        return _Neighbours(_directions(features), k)

    def compare(self, features: Tensor, logits: Tensor, learned: _Neighbours) -> Tensor:
        directions = _directions(features)
        chosen = torch.cat([_nearest(part, *learned) for part in parts(directions, QUERIES)])
        # Matrix products only pick the neighbour; its distance is then computed exactly.
        gaps = [
            (part.double() - learned.directions[rows].double()).norm(dim=1)
            for part, rows in zip(parts(directions, QUERIES), parts(chosen, QUERIES), strict=True)
        ]
        return torch.cat(gaps)


def _directions(features: Tensor) -> Tensor:
    """Features of unit length, zeros as they are: B×D → B×D; in float16 zeros would become NaN."""
    return F.normalize(features.float(), dim=1)


def _nearest(queries: Tensor, directions: Tensor, k: int) -> Tensor:
    """The row of the k-th nearest direction to each query: B×D, N×D → B."""
    best, rows = queries.new_full((queries.shape[0], k), -torch.inf), torch.zeros(queries.shape[0], k).long()
    for start in range(0, len(directions), NEIGHBOURS):
        block = directions[start : start + NEIGHBOURS]
        near, where = (queries @ block.T).topk(min(k, len(block)), dim=1)
        best, order = torch.cat([best, near], dim=1).topk(k, dim=1)
        rows = torch.cat([rows, where + start], dim=1).gather(1, order)
    return rows[:, k - 1]
