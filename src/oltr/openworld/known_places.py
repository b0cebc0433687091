"""What a run knows of its classes, as arrays: features with labels, and how near a class its images lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from oltr.openworld.known_images import known_images
from oltr.openworld.metric import Metric, class_means, unit
from oltr.runs.outputs import OPEN

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

LIKE = 0.25  # of known images lie farther from their class's mean: beyond them nothing is called alike


def known_features(run: TrainedRun) -> tuple[np.ndarray, np.ndarray]:
    """Features N×D and class numbers N of known images, by which clusters are tuned.

    Where the backbone is frozen, the validation images and what is kept of the training images: outputs of
    all of them (`oltr loop` and some scores make these), else exemplars. A backbone that was trained on them
    holds them together as it will hold no others: there validation and test images serve.
    """
    own = run.own_outputs()
    frozen = run.config.train_backbone == "none"
    whole = "train" in own and not run.changes.added
    splits = ("val", "train" if whole else "") if frozen else ("val", "test")
    parts = [own[split] for split in splits if split in own]
    found = [(part.features[part.labels != OPEN], part.labels[part.labels != OPEN]) for part in parts]
    if (frozen and not whole) or not found:
        known = known_images(run)
        found.append((known.features, known.labels))
    return tuple(torch.cat(each).numpy() for each in zip(*found, strict=True))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class KnownPlaces:
    """The known classes in the metric: a mean for each, and what is near."""

    means: np.ndarray  # K×D of length 1; zeros where a class has no images here
    near: float  # the similarity that most known images have with their own class's mean

    @classmethod
    def of(cls, metric: Metric, features: np.ndarray, labels: np.ndarray, classes: int) -> KnownPlaces:
        """From features N×D and labels N; an image is compared with the mean of the others of its class."""
        placed = metric(features)
        means = class_means(placed, labels, classes)
        sizes = np.bincount(labels, minlength=classes)[labels]
        others = unit(sizes[:, None] * means[labels] - placed)[sizes > 1]
        alike = (others * placed[sizes > 1]).sum(axis=1)
        return cls(unit(means), float(np.quantile(alike, LIKE)) if len(alike) else 1.0)

    def similarity(self, placed: np.ndarray) -> np.ndarray:
        """Cosine with each class's mean, N×D → N×K."""
        return placed @ self.means.T
