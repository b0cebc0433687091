"""Accuracy per shot group and open F over the batches of a validation epoch, summed across processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from oltr.metrics.accuracy import group_means, tally
from oltr.metrics.fmeasure import f_counts, f_from_counts
from oltr.metrics.shots import shot_groups
from oltr.runs.outputs import OPEN


class ShotAccuracy(Metric):
    """Means of per-class accuracies over many-, medium- and few-shot classes and over all; NaN for none."""

    higher_is_better = True
    full_state_update = False
    correct: Tensor
    total: Tensor

    def __init__(self, counts: Sequence[int] | np.ndarray, rule: str = "standard"):
        super().__init__()
        self.groups = shot_groups(counts, rule)
        for state in ("correct", "total"):
            self.add_state(state, torch.zeros(len(self.groups), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add a batch: logits B×K, labels B (-1 = open, left out)."""
        correct, total = tally(logits.argmax(dim=1), labels, len(self.groups))
        self.correct += correct
        self.total += total

    def compute(self) -> dict[str, Tensor]:
        """many, medium, few and overall as scalars."""
        means = group_means(self.correct.cpu().double() / self.total.cpu(), self.groups)
        plain = {name: torch.nan if value is None else value for name, value in means.items()}
        return {name: torch.tensor(value, device=self.device) for name, value in plain.items()}


class OpenF(Metric):
    """F-measure when an image whose largest softmax probability is below `threshold` is called unknown."""

    higher_is_better = True
    full_state_update = False
    counts: Tensor

    def __init__(self, threshold: float):
        super().__init__()
        self.threshold = threshold
        self.add_state("counts", torch.zeros(3, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add a batch: logits B×K, labels B (-1 = open)."""
        probability, predictions = logits.float().softmax(dim=1).max(dim=1)
        self.counts += f_counts(predictions.masked_fill(probability < self.threshold, OPEN), labels)

    def compute(self) -> Tensor:
        """F = 2 TP / (2 TP + FP + FN) as a scalar."""
        return torch.tensor(f_from_counts(self.counts), device=self.device)
