"""Whether a network that is sure to 80 % is right 80 times in 100, and one number that mends it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor
from torch.nn.functional import cross_entropy

from oltr.errors import UserError
from oltr.metrics.labels import OPEN

COLDEST, HOTTEST = 0.05, 20.0
AT_A_TIME = 4096  # images: N×K logits are not copied to float64 at once


@dataclass(frozen=True)
class Calibration:
    """Bins of about equally many images, from the least sure to the surest; B or fewer of them."""

    images: np.ndarray  # B int64, in each bin
    confidence: np.ndarray  # B float64, mean largest softmax probability
    accuracy: np.ndarray  # B float64, share named rightly
    error: float  # ECE = Σ_b images_b / N · |accuracy_b − confidence_b|


def calibration(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> Calibration:
    """In bins of equal mass: bin b of B holds the images of rank ⌈b N / B⌉ up to the next.

    `confidence` is the largest softmax probability of N images, `right` says which are named rightly.
    Images of equal confidence share a bin, whatever their order; a bin that is empty for that is left out.
    """
    if bins < 1:
        raise UserError(f"There must be at least one bin; got {bins}.")
    ranks = -(-np.arange(1, bins) * len(right) // bins)
    borders = np.sort(confidence)[ranks[ranks < len(right)]]
    place = np.searchsorted(borders, confidence, side="right")
    images, sure, named = (np.bincount(place, weights=of) for of in (np.ones(len(right)), confidence, right))
    filled = images > 0
    images, sure, named = images[filled], sure[filled], named[filled]
    error = float(np.abs(named - sure).sum() / len(right))
    return Calibration(images.astype(np.int64), sure / images, named / images, error)


def expected_calibration_error(probabilities: Tensor, labels: Tensor, bins: int = 15) -> float:
    """ECE = Σ_b n_b/N · |accuracy_b − confidence_b| of N×K probabilities, in bins of equal mass.

    >>> import torch
    >>> sure = torch.tensor([[0.75, 0.25], [1.0, 0.0]])
    >>> expected_calibration_error(sure, torch.tensor([0, 1]), bins=1)  # 0.875 sure, half of them right
    0.375
    """
    sure, named = probabilities.double().max(dim=1)
    return calibration(sure.numpy(), (named == labels).numpy(), bins).error


def negative_log_likelihood(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> float:
    """−(1/N) Σ log softmax(z/T)_y of N×K logits and N labels, in float64.

    >>> import torch
    >>> round(negative_log_likelihood(torch.zeros(3, 4), torch.tensor([0, 1, 2])), 4)  # log 4
    1.3863
    """
    parts = zip(logits.split(AT_A_TIME), labels.split(AT_A_TIME), strict=True)
    sums = [float(cross_entropy(z.double() / temperature, y, reduction="sum")) for z, y in parts]
    return sum(sums) / len(labels)


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The T in 0.05..20 with the least −Σ log softmax(z/T)_y (Guo et al., ICML 2017): N×K, N → one number.

    Open images (-1) are left out. 1 where the images do not tell: a single class, none, or every image named
    rightly, when the likelihood would grow for ever as T falls.

    >>> import torch
    >>> logits = torch.tensor([[4.0, 0.0]] * 4)  # 98 % sure of class 0, right on three images of four
    >>> round(fit_temperature(logits, torch.tensor([0, 0, 0, 1])), 3)  # 4/T = log 3
    3.641
    """
    known = labels != OPEN
    logits, labels = logits[known], labels[known]
    if not len(labels) or logits.shape[1] == 1 or bool((logits.argmax(dim=1) == labels).all()):
        return 1.0
    # In β = 1/T the likelihood is convex: Newton's steps, halving where one leaves the bracket.
    low, high = 1 / HOTTEST, 1 / COLDEST
    beta = 1.0
    for _ in range(60):
        slope, bend = _derivatives(logits, labels, beta)
        low, high = (low, beta) if slope > 0 else (beta, high)
        step = beta - slope / bend if bend > 0 else low
        step = step if low < step < high else (low * high) ** 0.5
        if abs(step - beta) <= 1e-9 * beta:
            break
        beta = step
    return 1 / step


def _derivatives(logits: Tensor, labels: Tensor, beta: float) -> tuple[float, float]:
    """Of the negative log-likelihood by β: Σ E_p[z] − z_y and Σ Var_p[z], p = softmax(βz)."""
    slope = bend = 0.0
    for some, truth in zip(logits.split(AT_A_TIME), labels.split(AT_A_TIME), strict=True):
        z = some.double() - some.amax(dim=1, keepdim=True)
        p = (beta * z).softmax(dim=1)
        mean = (p * z).sum(dim=1)
        slope += float((mean - z.gather(1, truth[:, None])[:, 0]).sum())
        bend += float(((p * z.square()).sum(dim=1) - mean.square()).sum())
    return slope, bend
