"""The class of an image, or a group of classes where the class is unsure but its group is not.

Classes stand in groups, these in larger ones (genus, family): `lineage` (K×L int64) numbers the group of each
of K classes at each of L levels, −1 for none; level 0 is the class itself, so that its column is 0..K−1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import betainc
from torch import Tensor

from oltr.errors import UserError

NONE = -1  # no group, or an image that no level answers
# The classes leave few validation images to the upper levels, and those alone would say almost nothing. Both
# numbers were chosen on validation and test images drawn again and again (docs/parents.md).
PRIOR_IMAGES = 20  # calibrated probabilities count as much as the answers on so many images
CONFIDENCE = 0.9  # that the precision is kept


class Answers(NamedTuple):
    """Answers for N images."""

    levels: Tensor  # N int64, 0 = class, −1 = unknown
    groups: Tensor  # N int64, the number of the group at that level, −1 = unknown
    probabilities: Tensor  # N float64, its summed probability, NaN = unknown


def group_probabilities(probabilities: Tensor, groups: Tensor) -> Tensor:
    """Sums over the classes of each group: N×K and K → N×G; classes of group −1 count nowhere.

    >>> group_probabilities(torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([0, 1, 0])).tolist()
    [[0.75, 0.25]]
    """
    within = groups != NONE
    sums = probabilities.new_zeros(len(probabilities), int(groups.max()) + 1)
    return sums.index_add_(1, groups[within], probabilities[:, within])


def best_groups(probabilities: Tensor, lineage: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest group of each level and its probability, both N×L.

    By sums, not above the likeliest class: many unlikely classes may make the likeliest group.
    """
    best = [group_probabilities(probabilities.double(), column).max(dim=1) for column in lineage.T]
    return torch.stack([each.indices for each in best], 1), torch.stack([each.values for each in best], 1)


def roll_up(
    probabilities: Tensor, lineage: Tensor, thresholds: Sequence[float], rejected: Tensor | None = None
) -> Answers:
    """The first level, from the class up, whose likeliest group reaches the level's threshold.

    Of N×K probabilities and L thresholds. Images that are `rejected` (N bool) get no class; they may get a
    group.
    """
    groups, values = best_groups(probabilities, lineage)
    reached = values >= torch.tensor(thresholds, dtype=values.dtype)
    if rejected is not None:
        reached[:, 0] &= ~rejected
    answered, level = reached.any(dim=1), reached.int().argmax(dim=1)
    rows = torch.arange(len(values))
    return Answers(
        level.masked_fill(~answered, NONE),
        groups[rows, level].masked_fill(~answered, NONE),
        values[rows, level].masked_fill(~answered, math.nan),
    )


def fit_thresholds(
    probabilities: Tensor,
    labels: Tensor,
    lineage: Tensor,
    precision: float,
    rejected: Tensor | None = None,
) -> list[float]:
    """For each level the smallest threshold that keeps the precision of the answers given there.

    Of N validation images with labels 0..K−1; level by level, as each leaves fewer images to the next. A
    level that cannot keep it answers nothing: its threshold is infinite.
    """
    check_precision(precision)
    groups, values = best_groups(probabilities, lineage)
    right = groups == lineage[labels]
    left = torch.ones(len(labels), dtype=torch.bool)
    thresholds = []
    for level in range(lineage.shape[1]):
        asked = left & ~rejected if level == 0 and rejected is not None else left
        thresholds.append(_smallest(values[asked, level].numpy(), right[asked, level].numpy(), precision))
        left = left & ~(asked & (values[:, level] >= thresholds[-1]))
    return thresholds


def keeps_precision(
    right: np.ndarray, answers: np.ndarray, believed: np.ndarray, precision: float
) -> np.ndarray:
    """Whether so many right answers are enough; `believed` is the answers' mean probability.

    P(share right ≥ precision) ≥ CONFIDENCE under Beta(right + c·believed, wrong + c·(1 − believed)) with
    c = PRIOR_IMAGES: what validation images say, begun with what the calibrated probabilities say.
    """
    for_it = right + PRIOR_IMAGES * believed
    against = np.maximum(answers - right + PRIOR_IMAGES * (1 - believed), 1e-9)
    return betainc(for_it, against, precision) <= 1 - CONFIDENCE


def check_precision(precision: float) -> None:
    """Refuse a precision that no answers can have, or that any have."""
    if not 0 < precision < 1:
        raise UserError(
            f"The precision must lie between 0 and 1; got {precision}.",
            "It is the share of answers that are to be right.",
            "0.95",
        )


def _smallest(values: np.ndarray, right: np.ndarray, precision: float) -> float:
    """The smallest of the values such that the answers from it up keep the precision."""
    order = np.argsort(-values, kind="stable")
    values, answers = values[order], np.arange(1, len(values) + 1)
    believed = np.minimum(np.cumsum(values) / answers, 1)
    kept = keeps_precision(np.cumsum(right[order]), answers, believed, precision)
    kept[:-1] &= values[:-1] > values[1:]  # images of equal value are answered together
    return float(values[kept][-1]) if kept.any() else math.inf
