"""What a run makes of each test and open image under its rejection rule: one of its classes, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.openset import RejectionRule
from oltr.runs.outputs import OPEN, Outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


@dataclass(frozen=True, eq=False)
class Decisions:
    """Of N images, those of the test split first, then the open ones."""

    labels: Tensor  # N int64, -1 = open
    likeliest: Tensor  # N int64, the class with the largest logit
    predictions: Tensor  # N int64, the same but -1 where the image is rejected
    confidence: Tensor  # N float64, the softmax probability of the likeliest class
    values: Tensor  # N float64, the score that decides, in its own units
    rule: RejectionRule
    num_classes: int
    test_images: int  # how many of the N; row r of the open split is image test_images + r


def decide(run: TrainedRun) -> Decisions:
    """The likeliest class of each image, or unknown where the run's rule rejects it."""
    splits = [split for split in ("test", "open") if split in run.outputs and len(run.outputs[split])]
    parts = [run.outputs[split] for split in splits]
    if "test" not in splits:
        raise UserError("There are no test images whose predictions could be looked at.")
    check_finite(parts)
    likeliest = torch.cat([part.logits.argmax(dim=1) for part in parts])
    values = torch.cat([run.scored(split).values for split in splits])
    return Decisions(
        labels=torch.cat([part.labels for part in parts]),
        likeliest=likeliest,
        predictions=likeliest.masked_fill(run.rule.rejects(values), OPEN),
        confidence=torch.cat([run.scored(split, "softmax").values for split in splits]),
        values=values,
        rule=run.rule,
        num_classes=len(run.class_names),
        test_images=len(parts[0]),
    )


def check_finite(parts: list[Outputs]) -> None:
    """Refuse outputs of a network that diverged."""
    if not all(bool(part.logits.isfinite().all()) for part in parts):
        raise UserError(
            "The outputs hold NaN or infinite values.", "The training of this network probably diverged."
        )
