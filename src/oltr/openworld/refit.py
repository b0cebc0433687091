"""A recogniser's head fitted anew to all that is labelled, and its threshold chosen anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from oltr.methods.logit_adjusted import Settings
from oltr.nn.fit_linear import fit_linear
from oltr.openset import SCORES, Score
from oltr.openset.threshold import choose_threshold

LENGTH = 18.7  # of a feature, root mean square: what the decay was chosen for


@dataclass(frozen=True, eq=False)
class Head:
    """Classes of features N×D, and which images are unknown."""

    classes: np.ndarray  # K int64: the class of each row
    weight: Tensor  # K×D
    bias: Tensor  # K
    score: Score
    threshold: float = 0.0

    def logits(self, features: np.ndarray) -> Tensor:
        """N×D → N×K float32."""
        return _tensor(features) @ self.weight.T + self.bias

    def predict(self, features: np.ndarray) -> np.ndarray:
        """The class with the largest logit, N int64."""
        return self.classes[self.logits(features).argmax(dim=1).numpy()]

    def values(self, features: np.ndarray) -> Tensor:
        """The score in its own units, N."""
        return self.score.value(_tensor(features), self.logits(features))

    def rejects(self, features: np.ndarray) -> np.ndarray:
        """Which images are unknown, N bool."""
        return self.score.is_unknown(self.values(features), self.threshold).numpy()


def refit(
    features: np.ndarray,
    labels: np.ndarray,
    validation: np.ndarray,
    score: str = "max-logit",
    unknown_rate: float = 0.05,
) -> Head:
    """A logit-adjusted linear head on features N×D with labels N (any numbers).

    The threshold rejects at most `unknown_rate` of the validation images (V×D).
    """
    classes, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    given, wanted = _tensor(features), torch.from_numpy(numbers)
    scale = LENGTH / float(given.square().sum(dim=1).mean().sqrt())
    prior = Settings.tau * torch.from_numpy(counts / counts.sum()).float().log()
    weight, bias, _ = fit_linear(
        scale * given, wanted, prior, decay=Settings.decay, iterations=Settings.iterations
    )
    head = Head(classes, scale * weight, bias, SCORES[score]())
    if head.score.needs_fit:
        head.score.fit(given, head.logits(features), wanted)
    if head.score.uses_validation:
        head.score.calibrate(_tensor(validation), head.logits(validation))
    return replace(head, threshold=choose_threshold(head.score, head.values(validation), unknown_rate))


def _tensor(features: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(features, dtype=np.float32))
