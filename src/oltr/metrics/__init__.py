"""Metrics of open long-tailed recognition, as pure functions and, for batches, as torchmetrics classes.

Accuracy and F1 per class and shot group, accuracy by other groups of images, the paper's open-set F-measures,
how well a score separates known from unknown images, calibration, and confidence intervals. Predictions and
labels are integer tensors in which `OPEN` (−1) is "unknown".
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oltr.metrics.accuracy import group_means, per_class_accuracy, per_class_f1, tally, top_k_hits
    from oltr.metrics.by_group import group_accuracy
    from oltr.metrics.calibration import (
        expected_calibration_error,
        fit_temperature,
        negative_log_likelihood,
    )
    from oltr.metrics.detection import (
        aupr_known,
        aupr_unknown,
        auroc,
        detection_error,
        detection_error_min,
        fpr95_known,
        fpr95_unknown,
        oscr,
    )
    from oltr.metrics.fmeasure import f_counts, f_from_counts, f_measure, f_measure_2019
    from oltr.metrics.intervals import (
        auroc_interval,
        difference_interval,
        f_interval,
        group_intervals,
        wilson_interval,
    )
    from oltr.metrics.labels import OPEN
    from oltr.metrics.running import OpenF, OpenSetAUROC, ShotAccuracy
    from oltr.metrics.shots import GROUPS, SHOT_RULES, shot_groups, shot_sizes

__all__ = [
    "GROUPS",
    "OPEN",
    "SHOT_RULES",
    "OpenF",
    "OpenSetAUROC",
    "ShotAccuracy",
    "aupr_known",
    "aupr_unknown",
    "auroc",
    "auroc_interval",
    "detection_error",
    "detection_error_min",
    "difference_interval",
    "expected_calibration_error",
    "f_counts",
    "f_from_counts",
    "f_interval",
    "f_measure",
    "f_measure_2019",
    "fit_temperature",
    "fpr95_known",
    "fpr95_unknown",
    "group_accuracy",
    "group_intervals",
    "group_means",
    "negative_log_likelihood",
    "oscr",
    "per_class_accuracy",
    "per_class_f1",
    "shot_groups",
    "shot_sizes",
    "tally",
    "top_k_hits",
    "wilson_interval",
]

# Loaded on first use, lightest first: shot groups need NumPy alone, torchmetrics takes seconds to import.
_MODULES = (
    "labels",
    "shots",
    "accuracy",
    "fmeasure",
    "detection",
    "calibration",
    "intervals",
    "by_group",
    "running",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            if (found := getattr(import_module(f"oltr.metrics.{module}"), name, None)) is not None:
                return found
    raise AttributeError(f"module 'oltr.metrics' has no attribute {name!r}")
