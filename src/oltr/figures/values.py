"""What figures read from outputs: scores and right answers, refused where they are no numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from torch import Tensor

from oltr.errors import UserError
from oltr.openset import Score
from oltr.runs.outputs import OPEN, Outputs


def score_values(
    outputs: Mapping[str, Outputs], split: str, score: Score, read: Mapping[str, Outputs] | None = None
) -> Tensor:
    """The score of each image of a split in its own units, N float64, all finite; `read` as in `evaluate`."""
    if split not in outputs or len(outputs[split]) == 0:
        raise UserError(f"There are no {split} images.", try_this=f"data with images in the split {split}")
    if score.needs == "images" and read is None:
        raise UserError(
            f"The score {score.name!r} reads outputs of images that it has changed.",
            "These are outputs of the images themselves.",
            "giving those as `read`, or another score",
        )
    values = score.value((outputs if read is None else read)[split])
    if astray := int((~values.isfinite()).sum()):
        raise UserError(
            f"The score {score.name!r} is NaN or infinite for {astray} {split} images.",
            "The network's outputs are not numbers; its training probably went astray.",
        )
    return values


def score_name(score: Score) -> str:
    """The score as the name of an axis."""
    if score.name == "reachability":
        return "reachability γ (feature distance to the nearest centroid)"
    return score.info.title[0].lower() + score.info.title[1:]


def threshold_words(thresholds: Collection[float]) -> str:
    """`threshold 0.1`, or `thresholds 0.81 to 0.84` where they differ; signs as in print."""
    low, high = (f"{value:.3g}".replace("-", "−") for value in (min(thresholds), max(thresholds)))
    return f"threshold {low}" if low == high else f"thresholds {low} to {high}"


def right_answers(outputs: Mapping[str, Outputs]) -> np.ndarray:
    """Whether the largest logit of each test image is that of its class, N bool."""
    if "test" not in outputs or len(outputs["test"]) == 0:
        raise UserError("There are no test images.", try_this="data with images in the split test")
    test = outputs["test"]
    if (test.labels == OPEN).any():
        raise UserError("Some test images have no known class.", "Open images belong to the open split.")
    if not test.logits.isfinite().all():
        raise UserError(
            "The outputs of test hold NaN or infinite values.",
            "The training of this network probably went astray.",
        )
    return (test.logits.argmax(dim=1) == test.labels).numpy()
