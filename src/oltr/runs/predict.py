"""A run's answers for images, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from oltr.data.image_access import Images
from oltr.runs.given_images import Given, decoded
from oltr.runs.outputs import Outputs, scored_by
from oltr.runs.split_outputs import compute_outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

COLUMNS = {
    "path": "object",
    "label": "object",
    "probability": "float64",
    "unknown": "boolean",  # pandas' own, which has room for "not known"
    "unknown_score": "float64",
    "reachability": "float64",
    "second_label": "object",
    "second_probability": "float64",
    "error": "object",
    "calibrated_probability": "float64",
}
NOT_FINITE = "the network's output is NaN or infinite"


def predict(run: TrainedRun, images: Iterable[Given] | Given) -> pd.DataFrame:
    """The columns of predictions.csv; an image without an answer has the reason in `error` and no more."""
    rows: list[dict[str, Any]] = []
    for some in decoded(images, run.config.data.frame):
        found = iter(()) if some.pixels is None else answer(run, some.pixels)
        for name, problem in zip(some.names, some.problems, strict=True):
            rows.append({"path": name, **({"error": problem} if problem else next(found))})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def predict_proba(run: TrainedRun, images: Iterable[Given] | Given) -> np.ndarray:
    """Probabilities N×K, calibrated where the run has a temperature; NaN for an image without an answer."""
    parts = [np.empty((0, len(run.class_names)))]
    for some in decoded(images, run.config.data.frame):
        found = np.full((len(some.names), len(run.class_names)), np.nan)
        if some.pixels is not None:
            outputs = compute_outputs(run, as_images(some.pixels))
            found[[not problem for problem in some.problems]] = calibrated(run, outputs).numpy()
        parts.append(found)
    return np.concatenate(parts)


def calibrated(run: TrainedRun, outputs: Outputs) -> torch.Tensor:
    """softmax(z/T) with the run's temperature, 1 where it has none; N×K float64, NaN for outputs that are not
    finite."""
    probabilities = (outputs.logits.double() / (run.temperature or 1.0)).softmax(dim=1)
    return probabilities.masked_fill(~_finite(outputs)[:, None], torch.nan)


def answer(run: TrainedRun, pixels: np.ndarray) -> Iterator[dict[str, Any]]:
    """The answer for each of n decoded images n×S×S×3."""
    images, score = as_images(pixels), run.fitted(run.rule.score)
    outputs = compute_outputs(run, images)
    read = compute_outputs(run, images, score) if score.view else outputs
    return answers(run, outputs, read)


def answers(run: TrainedRun, outputs: Outputs, read: Outputs) -> Iterator[dict[str, Any]]:
    """The answers that follow from outputs, and from those of the view that the run's score reads."""
    probabilities, labels = outputs.probabilities().topk(min(2, len(run.class_names)), dim=1)
    scored = scored_by(run.fitted(run.rule.score), read)
    finite = _finite(outputs) & ~scored.values.isnan()
    unknown, reachability = run.rule.rejects(scored.values), outputs.reachability
    believed = None if run.temperature is None else calibrated(run, outputs)
    for i in range(len(outputs)):
        if not finite[i]:  # no comparison with NaN holds: it would pass for known
            yield {"error": NOT_FINITE}
            continue
        second = labels.shape[1] > 1
        yield {
            "label": run.class_names[int(labels[i, 0])],
            "probability": float(probabilities[i, 0]),
            "unknown": bool(unknown[i]),
            "unknown_score": float(scored.unknown[i]),
            "reachability": None if reachability is None else float(reachability[i]),
            "second_label": run.class_names[int(labels[i, 1])] if second else None,
            "second_probability": float(probabilities[i, 1]) if second else None,
            "error": "",
            "calibrated_probability": None if believed is None else float(believed[i, labels[i, 0]]),
        }


def _finite(outputs: Outputs) -> torch.Tensor:
    return outputs.logits.isfinite().all(dim=1)


def as_images(pixels: np.ndarray) -> Images:
    """Decoded images n×S×S×3 of no known label, open for reading."""
    number = len(pixels)
    return Images(pixels.shape[1], np.full(number, -1), np.arange(number), torch.from_numpy(pixels))
