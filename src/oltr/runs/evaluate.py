"""From cached outputs to the report: closed-set and open-set numbers of one trained network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from oltr.errors import UserError
from oltr.metrics import detection
from oltr.metrics.accuracy import group_means, mean, per_class_accuracy, per_class_f1
from oltr.metrics.fmeasure import f_measure, f_measure_2019
from oltr.metrics.shots import shot_groups, shot_sizes
from oltr.openset import SCORES, Score
from oltr.openset.threshold import settle_threshold
from oltr.runs.outputs import OPEN, Outputs
from oltr.runs.report import SCHEMA, Report


def evaluate(
    outputs: Mapping[str, Outputs],
    class_names: Sequence[str],
    train_counts: Sequence[int] | np.ndarray,
    *,
    method: str,
    backbone: str,
    score: str | Score = "softmax",
    read: Mapping[str, Outputs] | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    shots: str = "standard",
    train_seconds: float | None = None,
    expect: Mapping[str, Any] | None = None,
) -> Report:
    """The report of a run from its outputs on `test`, on `open` when there are open images, and on `val` when
    an unknown rate is to be met; `expect` is a published row in the report's own shape: {"closed": {..},
    "open": {..}, "source": ".."}, fractions. `read` are the outputs that the score reads where these are
    others, of the same images: predictions come from `outputs` all the same."""
    _check(outputs, class_names, train_counts)
    chosen = SCORES[score] if isinstance(score, str) else score
    if chosen.needs == "images" and read is None:
        raise UserError(
            f"The score {chosen.name!r} reads outputs of images that it has changed.",
            "These are outputs of the images themselves.",
            "oltr evaluate, which makes them; or another score",
        )
    read = outputs if read is None else read
    test, unseen = outputs["test"], outputs.get("open")
    groups = shot_groups(train_counts, shots)
    predictions = test.logits.argmax(dim=1)
    accuracy = per_class_accuracy(predictions, test.labels, len(class_names))
    f1 = per_class_f1(predictions, test.labels, len(class_names))
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "method": method,
        "backbone": backbone,
        "num_classes": len(class_names),
        "shots": shot_sizes(train_counts, shots),
        "closed": {**group_means(accuracy, groups), "macro_f1": mean(f1)},
    }
    if unseen or threshold is not None or unknown_rate is not None:  # a wrong wish is told in either case
        line = settle_threshold(chosen, read.get("val"), threshold, unknown_rate)
    if unseen:
        data["open"] = {
            "score": chosen.name,
            "threshold": line,
            "unknown_rate": unknown_rate,
            **_open_numbers(test, unseen, chosen, (read["test"], read["open"]), line, groups),
        }
    columns = zip(class_names, train_counts, accuracy.tolist(), f1.tolist(), strict=True)
    data["per_class"] = [
        {"name": name, "train_count": int(count), "accuracy": right, "f1": f}
        for name, count, right, f in columns
    ]
    return Report({**data, "train_seconds": train_seconds, "expect": expect or {}})


def _open_numbers(
    test: Outputs,
    unseen: Outputs,
    score: Score,
    read: tuple[Outputs, Outputs],
    threshold: float,
    groups: np.ndarray,
) -> dict[str, float | None]:
    """What changes once images may be called unknown; a known image so called counts as wrong."""
    closed_predictions = test.logits.argmax(dim=1)
    rejected, caught = (score.is_unknown(score.value(part), threshold) for part in read)
    predictions = closed_predictions.masked_fill(rejected, OPEN)
    every_prediction = torch.cat([predictions, unseen.logits.argmax(dim=1).masked_fill(caught, OPEN)])
    every_label = torch.cat([test.labels, unseen.labels])
    sides = score.unknown_score(read[0]), score.unknown_score(read[1])
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
    }


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
                "The training of this network probably went astray.",
            )
    if (outputs["test"].labels == OPEN).any():
        raise UserError("Some test images have no known class.", "Open images belong to the open split.")
    if "open" in outputs and (outputs["open"].labels != OPEN).any():
        raise UserError("Some images of the open split carry a known class.", "Their label must be -1.")
