"""A recogniser's head fitted anew to all that is labelled, and its rejection rule chosen anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oltr.nn.fit_linear import fit_linear
from oltr.openset import SCORES, Score
from oltr.openset.threshold import choose_threshold

LENGTH = 18.7  # of a feature, root mean square: what the decay was chosen for
TAU, DECAY, ITERATIONS = 1.25, 2.5e-3, 60  # as the method logit-adjusted has them


@dataclass(frozen=True, eq=False)
class Head:
    """Logits of features (N×D), and which images are unknown."""

    weight: Tensor  # K×D
    bias: Tensor  # K
    scale: float
    score: Score
    threshold: float

    def logits(self, features: np.ndarray) -> Tensor:
        """N×D → N×K float32."""
        given = torch.from_numpy(np.asarray(features, dtype=np.float32))
        return self.scale * given @ self.weight.T + self.bias

    def rejects(self, features: np.ndarray) -> np.ndarray:
        """Which images are unknown, N bool."""
        values = self.score.value(torch.from_numpy(features), self.logits(features))
        return self.score.is_unknown(values, self.threshold).numpy()


def refit(
    features: np.ndarray,
    labels: np.ndarray,
    validation: np.ndarray,
    score: str = "max-logit",
    unknown_rate: float = 0.05,
) -> Head:
    """Logit-adjusted linear head on N×D features of classes 0..K-1, each with images.

    The threshold rejects at most `unknown_rate` of the validation images' features (M×D).
    """
    given = torch.from_numpy(np.asarray(features, dtype=np.float32))
    scale = LENGTH / float(given.square().sum(dim=1).mean().sqrt())
    numbers = torch.from_numpy(labels)
    counts = torch.bincount(numbers).float()
    prior = TAU * (counts / counts.sum()).log()
    weight, bias, _ = fit_linear(scale * given, numbers, prior, decay=DECAY, iterations=ITERATIONS)
    head = Head(weight, bias, scale, SCORES[score](), 0.0)
    if head.score.needs_fit:
        head.score.fit(given, head.logits(features), numbers)
    known = head.score.value(torch.from_numpy(validation), head.logits(validation))
    return Head(weight, bias, scale, head.score, choose_threshold(head.score, known, unknown_rate))
