"""How many training images each class gets, from the largest class to the smallest."""

from __future__ import annotations

import math

import numpy as np

from oltr.errors import UserError

ALPHAS = 0.05, 1e6  # allowed Pareto powers; beyond, the values overflow or are all equal


def pareto_counts(num_classes: int, largest: int, smallest: int, alpha: float = 6.0) -> np.ndarray:
    """Counts that follow a Pareto(α) distribution scaled to smallest..largest (the paper's α = 6).

    The k-th order statistic is replaced by its median, the quantile at (k − 0.3)/(K + 0.4): sorted random
    draws give anything from 89K to 164K images at ImageNet-LT's settings, the medians a stable 112K.
    """
    _check(num_classes, largest, smallest)
    if not ALPHAS[0] <= alpha <= ALPHAS[1]:
        raise UserError(f"A Pareto alpha of {alpha} is out of range.", try_this="0.05 or more, such as 6")
    rank = (np.arange(1, num_classes + 1) - 0.3) / (num_classes + 0.4)
    draws = (1.0 - rank) ** (-1.0 / alpha)
    return _scaled(draws[::-1], largest, smallest)


def exponential_counts(num_classes: int, largest: int, imbalance: float) -> np.ndarray:
    """n_c = int(n_max · IR^(−c/(K−1))), the profile of CIFAR-LT; IR = largest / smallest."""
    _check(num_classes, largest, 1)
    if not 1 <= imbalance < math.inf:
        raise UserError(
            f"An imbalance of {imbalance} is out of range.", "It is the largest class over the smallest."
        )
    position = np.arange(num_classes) / max(num_classes - 1, 1)
    # The small addition keeps exact values such as 500 · 100^(−1) = 5 from falling to 4 through rounding.
    return np.maximum((largest * imbalance ** (-position) + 1e-9).astype(np.int64), 1)


def _scaled(values: np.ndarray, largest: int, smallest: int) -> np.ndarray:
    """Decreasing values mapped linearly so that the first is `largest` and the last `smallest`."""
    span = values[0] - values[-1]
    share = (values - values[-1]) / span if span > 0 else np.ones_like(values)
    return np.floor(smallest + share * (largest - smallest) + 1e-9).astype(np.int64)


def _check(num_classes: int, largest: int, smallest: int) -> None:
    if num_classes < 1:
        raise UserError("A long-tailed set needs at least one class.")
    if not 1 <= smallest <= largest:
        raise UserError(
            f"Class sizes from {largest} to {smallest} are out of range.",
            "Needed: 1 ≤ smallest ≤ largest.",
        )
