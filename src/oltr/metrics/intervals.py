"""How far a number would move on other test images of the same classes: 95 % confidence intervals.

Shares of single classes have Wilson's interval. Means over classes and the F-measure are bootstrapped within
classes: the right answers among n_c images drawn again from those of class c are Binomial(n_c, accuracy_c),
so that no image is drawn. AUROC has DeLong's variance, within classes too.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from oltr.metrics.accuracy import tally
from oltr.metrics.detection import auroc
from oltr.metrics.labels import OPEN
from oltr.metrics.shots import GROUPS

Interval = tuple[float, float]
DRAWS = 2000
Z = 1.959963984540054  # 97.5 % of a normal distribution


def wilson_interval(correct: int, total: int) -> Interval:
    """(p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n), p = correct/n.

    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    share, more = correct / total, Z**2 / total
    middle = (share + more / 2) / (1 + more)
    half = Z * (share * (1 - share) / total + more / (4 * total)) ** 0.5 / (1 + more)
    return max(0.0, middle - half), min(1.0, middle + half)


def difference_interval(correct: int, total: int, other_correct: int, other_total: int) -> Interval:
    """Newcombe's, of correct/total − other_correct/other_total: from the distances to the ends of Wilson's.

    >>> low, high = difference_interval(56, 70, 48, 80)
    >>> round(low, 4), round(high, 4)
    (0.0524, 0.3339)
    """
    (low, high), (other_low, other_high) = (
        wilson_interval(correct, total),
        wilson_interval(other_correct, other_total),
    )
    share, other = correct / total, other_correct / other_total
    below = float(np.hypot(share - low, other_high - other))
    above = float(np.hypot(high - share, other - other_low))
    return share - other - below, share - other + above


def group_intervals(predictions: Tensor, labels: Tensor, groups: np.ndarray) -> dict[str, Interval | None]:
    """Of the means over classes that `group_means` gives, by shot group and overall; None without images."""
    correct, total = (of.numpy() for of in tally(predictions, labels, len(groups)))
    parts = {group: groups == group for group in GROUPS} | {"overall": np.full(len(groups), True)}
    return {name: mean_interval(correct[part], total[part]) for name, part in parts.items()}


def f_interval(predictions: Tensor, labels: Tensor, num_classes: int) -> Interval:
    """Of the F-measure 2 TP / (2 TP + FP + FN) of N predictions and N labels, -1 = unknown / open."""
    correct, total = (of.numpy() for of in tally(predictions, labels, num_classes))
    unseen = labels == OPEN
    missed, opened = int((unseen & (predictions != OPEN)).sum()), int(unseen.sum())
    draw = _generator()
    right = _resampled(correct, total, np.ones(len(total)), draw)
    let_in = draw.binomial(opened, missed / opened, DRAWS) if opened else np.zeros(DRAWS)
    return _middle(2 * right / np.maximum(right + total.sum() + let_in, 1))  # TP + FP is every known image


def auroc_interval(known_scores: Tensor, unknown_scores: Tensor, labels: Tensor) -> Interval:
    """DeLong's, on the scale of logits, so that it stays within 0..1; `labels` are those of the known images.

    An image's place is the share of the other side that it is rightly ordered against. AUROC is their mean,
    its variance Σ_c (n_c/n)² Var_c/n_c over the known classes plus Var/m over the m unknown images.
    """
    known = _places(known_scores, unknown_scores)
    unknown = 1 - _places(unknown_scores, known_scores)
    value = auroc(known_scores, unknown_scores)
    error = (_variance_of_mean(known, labels) + _variance_of_mean(unknown, torch.zeros(len(unknown)))) ** 0.5
    if not 0 < value < 1:
        return value, value
    place, half = np.log(value / (1 - value)), Z * error / (value * (1 - value))
    return float(1 / (1 + np.exp(half - place))), float(1 / (1 + np.exp(-half - place)))


def mean_interval(correct: np.ndarray, total: np.ndarray) -> Interval | None:
    """Of the mean over classes of correct_c / images_c (K and K ints); None without images."""
    tested = total > 0
    if not tested.any():
        return None
    correct, total = correct[tested], total[tested]
    return _middle(_resampled(correct, total, 1 / (total * len(total)), _generator()))


def _resampled(
    correct: np.ndarray, total: np.ndarray, weights: np.ndarray, draw: np.random.Generator
) -> np.ndarray:
    """Σ_c w_c · Binomial(n_c, correct_c/n_c), drawn over and over.

    Classes alike in images, right answers and weight are drawn as one.
    """
    shares = shares_that_spread(correct, total)
    alike, classes = np.unique(np.stack([total, shares, weights]), axis=1, return_counts=True)
    images = (classes * alike[0]).astype(np.int64)
    return draw.binomial(images, alike[1].clip(0, 1), (DRAWS, len(images))) @ alike[2]


def shares_that_spread(correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    """correct_c / images_c; classes with a single image, which have no spread of their own, share one."""
    shares = correct / np.maximum(total, 1)
    single = total == 1
    if single.any():
        shares[single] = shares[single].mean()
    return shares


def _generator() -> np.random.Generator:
    return np.random.default_rng(0)  # the same images, the same interval


def _middle(values: np.ndarray) -> Interval:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _places(scores: Tensor, others: Tensor) -> Tensor:
    """The share of the others that are higher than each score, equal ones counted half."""
    ordered = others.double().sort().values
    below, up_to = (torch.searchsorted(ordered, scores.double(), right=side) for side in (False, True))
    return 1 - (below + up_to).double() / (2 * len(others))


def _variance_of_mean(values: Tensor, strata: Tensor) -> float:
    """Of the mean of N values drawn within strata; strata of one value count as one stratum."""
    _, place, images = strata.unique(return_inverse=True, return_counts=True)
    place = torch.where(images[place] == 1, len(images), place)
    _, place, images = place.unique(return_inverse=True, return_counts=True)
    count = images.double()
    mean = torch.zeros_like(count).index_add_(0, place, values) / count
    squares = torch.zeros_like(count).index_add_(0, place, (values - mean[place]).square())
    spread = squares / (count - 1).clamp(min=1)
    return float((count * spread).sum()) / len(values) ** 2
