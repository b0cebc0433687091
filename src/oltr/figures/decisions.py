"""What a network makes of each image at a given score and threshold: one of its classes, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.metrics.shots import shot_groups
from oltr.openset import SCORES, Score
from oltr.runs.outputs import OPEN, Outputs


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a network made of N images, those of the test split first, then the open ones."""

    labels: Tensor  # N int64, -1 = open
    likeliest: Tensor  # N int64, the class with the largest logit
    predictions: Tensor  # N int64, the same but -1 where the image is called unknown
    confidence: Tensor  # N float64, the softmax probability of the likeliest class
    values: Tensor  # N float64, the score that decides, in its own units
    score: Score
    num_classes: int
    test_images: int  # how many of the N; row r of the open split is image test_images + r


def decide(
    test: Outputs,
    unseen: Outputs | None = None,
    *,
    score: str | Score = "softmax",
    threshold: float | None = None,
    read: Sequence[Outputs] | None = None,
) -> Decisions:
    """The likeliest class of each image, or unknown beyond the threshold; without one nothing is unknown.

    `read` are the outputs that the score reads where these are others, of the same images.
    """
    parts = [test] if unseen is None else [test, unseen]
    chosen = SCORES[score] if isinstance(score, str) else score
    _check(parts, chosen, read)
    likeliest = torch.cat([part.logits.argmax(dim=1) for part in parts])
    confidence = torch.cat([SCORES["softmax"].value(part) for part in parts])
    if chosen is SCORES["softmax"] and read is None:
        values = confidence
    else:
        values = torch.cat([chosen.value(part) for part in (parts if read is None else read)])
    rejected = torch.zeros_like(values, dtype=torch.bool)
    if threshold is not None:
        rejected = chosen.is_unknown(values, threshold)
    return Decisions(
        labels=torch.cat([part.labels for part in parts]),
        likeliest=likeliest,
        predictions=likeliest.masked_fill(rejected, OPEN),
        confidence=confidence,
        values=values,
        score=chosen,
        num_classes=test.logits.shape[1],
        test_images=len(test),
    )


def class_groups(
    decisions: Decisions, counts: Sequence[int] | np.ndarray, shots: str = "standard"
) -> np.ndarray:
    """The shot group of each class, K training counts -> K strings, refused where these are other classes."""
    if len(counts) != decisions.num_classes:
        raise UserError(f"There are {len(counts)} training counts but {decisions.num_classes} classes.")
    return shot_groups(counts, shots)


def _check(parts: Sequence[Outputs], score: Score, read: Sequence[Outputs] | None) -> None:
    if score.needs == "images" and read is None:
        raise UserError(
            f"The score {score.name!r} reads outputs of images that it has changed.",
            "These are outputs of the images themselves.",
            "another score",
        )
    if read is not None and [len(part) for part in read] != [len(part) for part in parts]:
        raise UserError(f"The outputs that the score {score.name!r} reads are not of the same images.")
    if not sum(map(len, parts)):
        raise UserError("There are no images whose predictions could be looked at.")
    if len({part.logits.shape[1] for part in parts}) > 1:
        raise UserError("The outputs of the test and the open split have different numbers of classes.")
    if not all(bool(part.logits.isfinite().all()) for part in parts):
        raise UserError(
            "The outputs hold NaN or infinite values.", "The training of this network probably went astray."
        )
    if bool((parts[0].labels == OPEN).any()) or any(bool((part.labels != OPEN).any()) for part in parts[1:]):
        raise UserError(
            "Known and open images are mixed up.",
            "The test split must hold known classes alone, the open split none of them.",
        )
