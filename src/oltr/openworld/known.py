"""What a run knows of its classes, as arrays: features with labels, and how near a class its images lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oltr.console import console
from oltr.errors import UserError
from oltr.openworld.metric import Metric, class_means, unit
from oltr.runs.outputs import OPEN, Outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

LIKE = 0.25  # of known images lie farther from their class's mean: beyond them nothing is called alike


def known_outputs(run: TrainedRun) -> Outputs:
    """Of images with known classes, by which clusters are tuned.

    Training images where the backbone is frozen; one that was trained on them holds them together as it will
    hold no others, and there validation and test images serve.
    """
    frozen = run.config.train_backbone == "none"
    parts = [
        run.own_outputs()[split]
        for split in (("val",) if frozen else ("val", "test"))
        if split in run.outputs
    ]
    if frozen:
        try:
            parts.append(run._training_outputs())
        except UserError as problem:
            console.warn(f"clusters are tuned on few images, without those of the training: {problem.why}")
            parts += [run.own_outputs()["test"]] if "test" in run.outputs else []
    if not parts:
        raise UserError(
            f"{run.path} has no outputs of known images.",
            "The cut through the clusters is chosen on them.",
            "a source with a val or a test split",
        )
    rows = [part.subset((part.labels != OPEN).nonzero().flatten().numpy()) for part in parts]
    return rows[0] if len(rows) == 1 else _joined(rows)


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


def _joined(parts: list[Outputs]) -> Outputs:
    import torch

    return Outputs(
        *(torch.cat([getattr(part, name) for part in parts]) for name in ("logits", "labels", "features"))
    )
