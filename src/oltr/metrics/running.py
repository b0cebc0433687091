"""Metrics accumulated over batches and over the processes of a distributed run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from oltr.metrics.accuracy import group_means, tally
from oltr.metrics.detection import auroc
from oltr.metrics.fmeasure import f_counts, f_from_counts
from oltr.metrics.labels import OPEN
from oltr.metrics.shots import shot_groups


class ShotAccuracy(Metric):
    """Means of per-class accuracies over many-, medium- and few-shot classes and over all; NaN for none.

    >>> accuracy = ShotAccuracy([200, 50, 5])  # training images per class
    >>> accuracy.update(torch.eye(3), torch.tensor([0, 1, 1]))
    >>> {name: value.item() for name, value in accuracy.compute().items()}
    {'many': 1.0, 'medium': 0.5, 'few': nan, 'overall': 0.75}
    """

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
    """F-measure when images whose largest softmax probability is below `threshold` are rejected.

    >>> f = OpenF(threshold=0.6)
    >>> f.update(torch.tensor([[4.0, 0.0], [0.1, 0.0], [0.0, 4.0]]), torch.tensor([0, -1, -1]))
    >>> round(f.compute().item(), 4)
    0.6667
    """

    higher_is_better = True
    full_state_update = False
    counts: Tensor

    def __init__(self, threshold: float = 0.1):
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


class OpenSetAUROC(Metric):
    """AUROC of a score that is higher for more unknown images, over all batches.

    >>> metric = OpenSetAUROC()
    >>> metric.update(torch.tensor([0.1, 0.2, 0.3, 0.3, 0.4]), torch.tensor([0, 2, 1, -1, -1]))
    >>> round(metric.compute().item(), 4)
    0.9167
    """

    higher_is_better = True
    full_state_update = False
    scores: list[Tensor]
    labels: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        for state in ("scores", "labels"):
            self.add_state(state, [], dist_reduce_fx="cat")

    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Add a batch: scores B, labels B (-1 = open)."""
        self.scores.append(scores)
        self.labels.append(labels)

    def compute(self) -> Tensor:
        """P(open scores above known) + ½ P(equal) as a scalar."""
        scores, is_open = dim_zero_cat(self.scores), dim_zero_cat(self.labels) == OPEN
        return torch.tensor(auroc(scores[~is_open], scores[is_open]), device=self.device)
