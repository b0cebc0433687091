"""The temperature that divides a run's logits before softmax, for probabilities that can be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from oltr.metrics.calibration import fit_temperature
from oltr.runs.outputs import OPEN, Outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


def saved_temperature(run: TrainedRun) -> float | None:
    """The one in run.yaml; a run of before there was one is fitted when first asked."""
    return run.facts["temperature"] if "temperature" in run.facts else suited_temperature(run)


def suited_temperature(run: TrainedRun) -> float | None:
    """The one that suits the run's own validation images; None without any, or with outputs not finite."""
    kept = run.own_outputs()
    if "val" not in kept or not len(kept["val"]):
        return None
    val = kept["val"]
    if not bool((val.labels != OPEN).any()) or not bool(val.logits.isfinite().all()):
        return None
    return fit_temperature(val.logits, val.labels)


def calibrated(run: TrainedRun, outputs: Outputs) -> torch.Tensor:
    """softmax(z/T) with the run's temperature, 1 where it has none; N×K float64, NaN for outputs that are not
    finite."""
    probabilities = (outputs.logits.double() / (run.temperature or 1.0)).softmax(dim=1)
    return probabilities.masked_fill(~is_finite(outputs)[:, None], torch.nan)


def is_finite(outputs: Outputs) -> torch.Tensor:
    """Which images have an output to go by: N bool."""
    return outputs.logits.isfinite().all(dim=1)
