"""The paper's open-set F-measure, as corrected in January 2020 and as in the printed paper."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.metrics.labels import OPEN


def f_counts(predictions: Tensor, labels: Tensor) -> Tensor:
    """TP, FP, FN as a 3 int64 tensor: known image classified correctly; known image misclassified or
    rejected; open image accepted."""
    known = labels != OPEN
    right = predictions == labels
    return torch.stack([(known & right).sum(), (known & ~right).sum(), (~known & ~right).sum()])


def f_from_counts(counts: Tensor) -> float:
    """2 p r / (p + r) = 2 TP / (2 TP + FP + FN), with p = TP/(TP+FP) and r = TP/(TP+FN); 0 when undefined."""
    true_positive, false_positive, false_negative = counts.tolist()
    if true_positive == 0:
        return 0.0
    return 2 * true_positive / (2 * true_positive + false_positive + false_negative)


def f_measure(predictions: Tensor, labels: Tensor) -> float:
    """Corrected F-measure of N predictions and N labels, -1 = unknown / open.

    >>> f_measure(torch.tensor([0, -1, 1, 2]), torch.tensor([0, 1, -1, -1]))  # TP 1, FP 1, FN 2
    0.4
    """
    return f_from_counts(f_counts(predictions, labels))


def f_measure_2019(predictions: Tensor, labels: Tensor) -> float:
    """The form behind the paper's printed values: a known image that is rejected is not counted.

    >>> f_measure_2019(torch.tensor([0, -1, 1, 2]), torch.tensor([0, 1, -1, -1]))  # TP 1, FP 0, FN 2
    0.5
    """
    counted = (labels == OPEN) | (predictions != OPEN)
    return f_measure(predictions[counted], labels[counted])
