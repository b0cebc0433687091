"""How well a score separates unknown from known images; scores are higher for more unknown.

A threshold t accepts as known the images with score <= t, so images with equal scores are treated alike;
every measure is computed from counts per distinct score, in O(n log n) and float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.errors import UserError


def auroc(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """P(unknown scores above known) + ½ P(equal), over all pairs.

    >>> auroc(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.3, 0.4]))
    0.9166666666666666
    """
    known, unknown = _per_score(known_scores, unknown_scores)
    return _pairs_in_order(known, unknown) / (len(known_scores) * len(unknown_scores))


def oscr(known_scores: Tensor, unknown_scores: Tensor, correct: Tensor) -> float:
    """Area under CCR(t) against FPR(t), t from -∞ to ∞, points joined by straight lines.

    CCR(t) = share of known images both accepted and classified correctly, FPR(t) = share of unknown images
    accepted. It is the AUROC with the pairs of misclassified known images (`correct` false) counted as wrong.

    >>> oscr(torch.tensor([0.1, 0.2]), torch.tensor([0.3, 0.4]), torch.tensor([True, False]))
    0.5
    """
    _check(known_scores, unknown_scores)
    known, unknown = _tally(known_scores[correct], unknown_scores)
    return _pairs_in_order(known, unknown) / (len(known_scores) * len(unknown_scores))


def aupr_unknown(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """Average precision Σ (R_i − R_{i−1}) P_i over falling thresholds, unknown = positive."""
    known, unknown = _per_score(known_scores, unknown_scores)
    return _average_precision(unknown.flip(0), known.flip(0))


def aupr_known(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """Average precision Σ (R_i − R_{i−1}) P_i over rising thresholds, known = positive."""
    return _average_precision(*_per_score(known_scores, unknown_scores))


def fpr95_known(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """Share of unknown images accepted at the lowest threshold that accepts >= 95 % of the known (ODIN's).

    >>> fpr95_known(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.3, 0.4]))
    0.5
    """
    return _fpr95(*_per_score(known_scores, unknown_scores))


def fpr95_unknown(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """Share of known images rejected at the highest threshold that rejects >= 95 % of the unknown."""
    known, unknown = _per_score(known_scores, unknown_scores)
    return _fpr95(unknown.flip(0), known.flip(0))


def detection_error(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """½ (1 − 0.95) + ½ FPR at 95 % TPR, known = positive: the error of the paper's CIFAR-100 table."""
    return 0.5 * (1 - 0.95) + 0.5 * fpr95_known(known_scores, unknown_scores)


def detection_error_min(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """min over thresholds of ½ share of known rejected + ½ share of unknown accepted."""
    known, unknown = _per_score(known_scores, unknown_scores)
    rejected = 1 - known.cumsum(0) / known.sum()
    accepted = unknown.cumsum(0) / unknown.sum()
    accept_none = 0.5  # at a threshold below every score
    return min(accept_none, float((0.5 * rejected + 0.5 * accepted).min()))


def _check(known_scores: Tensor, unknown_scores: Tensor) -> None:
    for side, scores in (("known", known_scores), ("open", unknown_scores)):
        if len(scores) == 0:
            raise UserError(f"There are no {side} images.", "Detection metrics need known and open images.")
        if scores.isnan().any():
            raise UserError(
                f"The score of {int(scores.isnan().sum())} {side} images is NaN.",
                "The network's outputs are NaN; its training probably diverged.",
            )


def _tally(known_scores: Tensor, unknown_scores: Tensor) -> tuple[Tensor, Tensor]:
    """Known and unknown images at each of the U distinct scores, rising; two U float64 tensors."""
    scores, place = torch.cat([known_scores.double(), unknown_scores.double()]).unique(return_inverse=True)
    known, unknown = place.split([len(known_scores), len(unknown_scores)])
    return known.bincount(minlength=len(scores)).double(), unknown.bincount(minlength=len(scores)).double()


def _per_score(known_scores: Tensor, unknown_scores: Tensor) -> tuple[Tensor, Tensor]:
    _check(known_scores, unknown_scores)
    return _tally(known_scores, unknown_scores)


def _pairs_in_order(known: Tensor, unknown: Tensor) -> float:
    """(known, unknown) pairs whose unknown scores higher, equal scores counted half; both in rising order."""
    return float((unknown * (known.cumsum(0) - 0.5 * known)).sum())


def _average_precision(positive: Tensor, negative: Tensor) -> float:
    """Σ ΔR · P over the thresholds; counts ordered from the most positive score on."""
    found = positive.cumsum(0)
    # The first thresholds may have negatives only: found = 0 there, and so is their precision.
    precision = found / (found + negative.cumsum(0))
    return float((positive * precision).sum() / positive.sum())


def _fpr95(positive: Tensor, negative: Tensor) -> float:
    """Share of negatives at the first threshold that accepts 95 % of the positives."""
    enough = positive.cumsum(0) / positive.sum() >= 0.95
    first = int(enough.int().argmax())
    return float(negative[: first + 1].sum() / negative.sum())
