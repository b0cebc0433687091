"""Made-up features of classes that stand apart, with noise that says nothing of the class."""

from __future__ import annotations

import numpy as np


def blobs(
    classes: int, images: int, seed: int = 0, first: int = 0, dims: int = 24, apart: float = 4.0
) -> tuple[np.ndarray, np.ndarray]:
    """Features N×D and labels N of classes `first`..: noise of 1, and of 4 in the last four dimensions.

    A class has the same place whatever the seed.
    """
    random = np.random.default_rng([seed, 1])
    places = np.stack([np.random.default_rng([7, first + k]).normal(size=dims) for k in range(classes)])
    places[:, -4:] = 0
    labels = np.repeat(np.arange(classes), images)
    noise = random.normal(size=(len(labels), dims))
    noise[:, -4:] *= 4
    return (apart * places[labels] + noise).astype(np.float32), first + labels
