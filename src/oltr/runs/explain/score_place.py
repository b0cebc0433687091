"""Where one image's score lies among those of the shot groups and of the open images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from oltr.errors import UserError
from oltr.metrics.shots import GROUPS
from oltr.runs.trained_run import TrainedRun


@dataclass(frozen=True, eq=False)
class ScorePlace:
    """The scores of the test and open images by group, and the one that is asked about."""

    score: str
    groups: dict[str, np.ndarray]  # many, medium, few, open → n float64, those that have images
    less_familiar: dict[str, float]  # group → share of its images that are further on the unknown side
    value: float
    threshold: float


def score_place(run: TrainedRun, value: float) -> ScorePlace:
    """A value of the run's score among its test and open images."""
    _ = run.outputs["test"]  # says why there are none
    groups = values_by_group(run)
    side = run.fitted(run.rule.score)
    shares = {
        kind: float(side.is_unknown(torch.from_numpy(values), value).double().mean())
        for kind, values in groups.items()
    }
    return ScorePlace(run.rule.score, groups, shares, value, run.rule.threshold)


def values_by_group(run: TrainedRun, score: str | None = None) -> dict[str, np.ndarray]:
    """The score of the test images of each shot group, and of the open images; groups that have any."""
    values, labels = finite_values(run, "test", score), run.outputs["test"].labels.numpy()
    kinds = run.groups[labels]
    found = {kind: values[kinds == kind] for kind in GROUPS if (kinds == kind).any()}
    if "open" in run.outputs and len(run.outputs["open"]):
        found["open"] = finite_values(run, "open", score)
    return found


def finite_values(run: TrainedRun, split: str, score: str | None = None) -> np.ndarray:
    """The score of each image of a split in its own units, N float64; refused where some are no numbers."""
    if split not in run.outputs or len(run.outputs[split]) == 0:
        raise UserError(f"There are no {split} images.", try_this=f"data with images in the split {split}")
    values = run.scored(split, score).values
    if broken := int((~values.isfinite()).sum()):
        raise UserError(
            f"The score {score or run.rule.score!r} is NaN or infinite for {broken} {split} images.",
            "The network's outputs are not numbers; its training probably diverged.",
        )
    return values.numpy()
