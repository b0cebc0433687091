"""The upper tail of a sample of distances as a Weibull distribution."""

from __future__ import annotations

import numpy as np
from torch import Tensor

Tail = tuple[float, float, float]  # where it begins, its shape and its scale
NO_TAIL: Tail = (float("inf"), 1.0, 1.0)


def fit_tail(distances: np.ndarray, size: int, smallest_scale: float) -> Tail:
    """A Weibull distribution, of greatest likelihood, of the `size` largest distances above the next one.

    Where they are too few or all the same, an exponential one of their mean, at least `smallest_scale`.
    """
    from scipy.stats import weibull_min  # half a second that most commands need not wait for

    if len(distances) == 0:
        return NO_TAIL
    rising = np.sort(distances)
    size = min(size, len(rising) - 1)
    begin = float(rising[-1 - size])
    above = rising[len(rising) - size :] - begin
    above = above[above > 0]
    if len(np.unique(above)) < 2 or np.ptp(above) < smallest_scale:
        return begin, 1.0, max(float(above.mean()) if len(above) else 0.0, smallest_scale)
    shape, _, scale = weibull_min.fit(above, floc=0)
    return begin, float(shape), float(scale)


def fit_whole_tail(distances: np.ndarray, size: int, smallest_scale: float) -> Tail:
    """The same of the `size` largest distances themselves, the smallest of them at 1, as libMR has it.

    Where they are a single one or all the same, a step at that distance.
    """
    from scipy.stats import weibull_min

    tail = np.sort(distances)[-size:]
    if np.ptp(tail) < smallest_scale:
        return float(tail[-1]), 1.0, smallest_scale
    begin = float(tail[0]) - 1
    shape, _, scale = weibull_min.fit(tail - begin, floc=0)
    return begin, float(shape), float(scale)


def weibull_cdf(distances: Tensor, begin: Tensor, shape: Tensor, scale: Tensor) -> Tensor:
    """W(d) = 1 − exp(−((d − begin) / scale)^shape), 0 before it begins; all of one shape."""
    return -((((distances - begin).clamp(min=0) / scale) ** shape).neg().expm1())
