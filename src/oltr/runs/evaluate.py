"""From outputs to the report: closed-set and open-set numbers of one trained network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from oltr.errors import UserError
from oltr.metrics import detection
from oltr.metrics.accuracy import group_means, mean, per_class_accuracy, per_class_f1, tally, top_k_hits
from oltr.metrics.calibration import expected_calibration_error, negative_log_likelihood
from oltr.metrics.fmeasure import f_measure, f_measure_2019
from oltr.metrics.intervals import auroc_interval, f_interval, group_intervals, wilson_interval
from oltr.metrics.shots import GROUPS, shot_groups, shot_sizes
from oltr.openset import SCORES, RejectionRule
from oltr.runs.outputs import OPEN, Outputs, Scored, scored_by
from oltr.runs.report import CalibrationNumbers, ClassNumbers, Closed, Open, Regrouped, Report, Shots

PAPER_RULE = RejectionRule("softmax", 0.1)
TOP = 5


def evaluate(
    outputs: Mapping[str, Outputs],
    class_names: Sequence[str],
    train_counts: Sequence[int] | np.ndarray,
    rule: RejectionRule = PAPER_RULE,
    scored: Mapping[str, Scored] | None = None,
    *,
    method: str,
    backbone: str,
    shots: str = "standard",
    temperature: float | None = None,
    train_seconds: float | None = None,
    expect: Mapping[str, Any] | None = None,
    note: str | None = None,
    adjustment: Mapping[str, Any] | None = None,
) -> Report:
    """The report of outputs on `test`, and on `open` if there are open images, under a rejection rule.

    `scored` has the rule's score of these images; without it the score is computed from `outputs`, which
    suits scores that are neither fitted nor read other views. `temperature` divides logits for calibrated
    probabilities. `expect` is a published row in the report's own shape: {"closed": {..}, "open": {..},
    "source": "..", "shots": ".."}, fractions; where it counts shot groups by another rule, ours are
    counted so as well.
    """
    _check(outputs, class_names, train_counts)
    test = outputs["test"]
    groups = shot_groups(train_counts, shots)
    predictions = test.logits.argmax(dim=1)
    accuracy = per_class_accuracy(predictions, test.labels, len(class_names))
    f1 = per_class_f1(predictions, test.labels, len(class_names))
    open_part = open_accuracy = None
    if "open" in outputs and len(outputs["open"]):
        scored = scored or {split: _scored(rule, outputs[split]) for split in ("test", "open")}
        numbers = _open_numbers(test, outputs["open"], rule, scored, groups)
        open_part = Open(rule.score, rule.threshold, rule.unknown_rate, **numbers)
        accepted = predictions.masked_fill(rule.rejects(scored["test"].values), OPEN)
        open_accuracy = per_class_accuracy(accepted, test.labels, len(class_names))
    within = _within(test, predictions, len(class_names))
    columns = zip(class_names, train_counts, _numbers(accuracy), _numbers(f1), within, strict=True)
    per_class = [
        ClassNumbers(name, int(count), right, f, spread) for name, count, right, f, spread in columns
    ]
    return Report(
        method=method,
        backbone=backbone,
        num_classes=len(class_names),
        shots=Shots(**shot_sizes(train_counts, shots)),
        closed=_closed(test, predictions, accuracy, f1, groups),
        open=open_part,
        per_class=per_class,
        calibration=_calibration(test, temperature),
        train_seconds=train_seconds,
        expect=dict(expect or {}),
        regrouped=_regrouped(accuracy, open_accuracy, train_counts, shots, dict(expect or {})),
        note=note,
        adjustment=dict(adjustment) if adjustment else None,
    )


def _regrouped(
    closed: torch.Tensor,
    opened: torch.Tensor | None,
    counts: Sequence[int] | np.ndarray,
    own: str,
    published: Mapping[str, Any],
) -> Regrouped | None:
    """Means over groups as the published row counts them; None if that changes the group of no class."""
    theirs = published.get("shots", own)
    groups = shot_groups(counts, theirs)
    if (groups == shot_groups(counts, own)).all():
        return None

    def means(accuracy: torch.Tensor) -> dict[str, float | None]:
        return {group: value for group, value in group_means(accuracy, groups).items() if group in GROUPS}

    sizes = Shots(**shot_sizes(counts, theirs))
    return Regrouped(theirs, sizes, means(closed), None if opened is None else means(opened))


def _closed(
    test: Outputs, predictions: torch.Tensor, accuracy: torch.Tensor, f1: torch.Tensor, groups: np.ndarray
) -> Closed:
    """What it names rightly when nothing may be rejected."""
    top5 = None
    if len(groups) > TOP:
        hits = test.labels.where(top_k_hits(test.logits, test.labels, TOP), predictions)
        top5 = mean(per_class_accuracy(hits, test.labels, len(groups)))
    return Closed(
        **group_means(accuracy, groups),
        macro_f1=mean(f1),
        top5=top5,
        micro=float((predictions == test.labels).double().mean()),
        interval=_lists(group_intervals(predictions, test.labels, groups)),
    )


def _calibration(test: Outputs, temperature: float | None) -> CalibrationNumbers:
    """How far the probabilities of the test images can be believed, as they are and calibrated."""

    def error_and_loss(divisor: float) -> tuple[float, float]:
        probabilities = (test.logits / divisor).softmax(dim=1)
        error = expected_calibration_error(probabilities, test.labels)
        return error, negative_log_likelihood(test.logits, test.labels, divisor)

    calibrated = (None, None) if temperature is None else error_and_loss(temperature)
    return CalibrationNumbers(temperature, *error_and_loss(1.0), *calibrated)


def _within(test: Outputs, predictions: torch.Tensor, num_classes: int) -> list[list[float] | None]:
    """The interval of each class's accuracy; None without test images."""
    right, images = (of.tolist() for of in tally(predictions, test.labels, num_classes))
    return [list(wilson_interval(r, n)) if n else None for r, n in zip(right, images, strict=True)]


def _open_numbers(
    test: Outputs, unseen: Outputs, rule: RejectionRule, scored: Mapping[str, Scored], groups: np.ndarray
) -> dict[str, Any]:
    """What changes once images may be rejected; a rejected known image counts as wrong."""
    closed_predictions = test.logits.argmax(dim=1)
    rejected, caught = (rule.rejects(scored[split].values) for split in ("test", "open"))
    predictions = closed_predictions.masked_fill(rejected, OPEN)
    every_prediction = torch.cat([predictions, unseen.logits.argmax(dim=1).masked_fill(caught, OPEN)])
    every_label = torch.cat([test.labels, unseen.labels])
    sides = scored["test"].unknown, scored["open"].unknown
    intervals = {
        **group_intervals(predictions, test.labels, groups),
        "unknown_recall": wilson_interval(int(caught.sum()), len(caught)),
        "f_measure": f_interval(every_prediction, every_label, len(groups)),
        "auroc": auroc_interval(*sides, test.labels),
    }
    return {
        **group_means(per_class_accuracy(predictions, test.labels, len(groups)), groups),
        "unknown_recall": float(caught.double().mean()),
        "f_measure": f_measure(every_prediction, every_label),
        "f_measure_2019": f_measure_2019(every_prediction, every_label),
        "auroc": detection.auroc(*sides),
        "aupr_known": detection.aupr_known(*sides),
        "aupr_unknown": detection.aupr_unknown(*sides),
        "fpr95_known": detection.fpr95_known(*sides),
        "fpr95_unknown": detection.fpr95_unknown(*sides),
        "detection_error": detection.detection_error(*sides),
        "detection_error_min": detection.detection_error_min(*sides),
        "oscr": detection.oscr(*sides, correct=closed_predictions == test.labels),
        "interval": _lists(intervals),
    }


def _scored(rule: RejectionRule, outputs: Outputs) -> Scored:
    score = SCORES[rule.score]()
    if score.view:
        raise UserError(
            f"The score {score.name!r} reads outputs of images that it has changed.",
            "These are outputs of the images themselves.",
            "oltr evaluate, which makes them; or another score",
        )
    return scored_by(score, outputs)


def _lists(intervals: Mapping[str, tuple[float, float] | None]) -> dict[str, list[float] | None]:
    return {name: None if within is None else list(within) for name, within in intervals.items()}


def _numbers(values: torch.Tensor) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _check(
    outputs: Mapping[str, Outputs], class_names: Sequence[str], train_counts: Sequence[int] | np.ndarray
) -> None:
    if "test" not in outputs or len(outputs["test"]) == 0:
        raise UserError("There are no test images to evaluate on.", try_this="data with a test split")
    if len(train_counts) != len(class_names):
        raise UserError(f"There are {len(class_names)} class names but {len(train_counts)} training counts.")
    for split, part in outputs.items():
        if part.logits.shape[1] != len(class_names):
            raise UserError(
                f"The outputs of {split} have {part.logits.shape[1]} classes, the run {len(class_names)}.",
                try_this="delete them; the same oltr train command with --resume makes them anew",
            )
        if not part.logits.isfinite().all():
            raise UserError(
                f"The outputs of {split} hold NaN or infinite values.",
                "The training of this network probably diverged.",
            )
    if (outputs["test"].labels == OPEN).any():
        raise UserError("Some test images have no known class.", "Open images belong to the open split.")
    if "open" in outputs and (outputs["open"].labels != OPEN).any():
        raise UserError("Some images of the open split carry a known class.", "Their label must be -1.")
