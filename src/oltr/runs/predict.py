"""A run's answers for images, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from oltr.data.image_access import Images
from oltr.runs.allowed import Allowed, allowed_classes
from oltr.runs.collect import stream_outputs
from oltr.runs.given_images import Given, decoded
from oltr.runs.nearest_images import NearestImages
from oltr.runs.outputs import Outputs, scored_by
from oltr.runs.read_ahead import Decoded
from oltr.runs.split_outputs import view_change

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
TOP = 5
NOT_FINITE = "the network's output is NaN or infinite"


@dataclass(frozen=True)
class Asked:
    """What is asked of a run beside its plain answers."""

    allowed: Allowed | None = None
    nearest: NearestImages | None = None


PLAIN = Asked()


def asked_of(run: TrainedRun, only: str | Path | Sequence[str] | None, nearest: int = 0) -> Asked:
    """`only`: the classes that can occur, as a list, comma-separated, or in a text file."""
    allowed = None if only is None else allowed_classes(run.class_names, only)
    return Asked(allowed, NearestImages(run, nearest) if nearest else None)


def predict(
    run: TrainedRun,
    images: Iterable[Given] | Given,
    only: str | Path | Sequence[str] | None = None,
    nearest: int = 0,
) -> pd.DataFrame:
    """The columns of predictions.csv; an image without an answer has the reason in `error` and no more."""
    asked = asked_of(run, only, nearest)
    columns = COLUMNS | ({"nearest": "object"} if nearest else {})
    rows: list[dict[str, Any]] = []
    for some, outputs in outputs_of(run, decoded(images, run.config.data.frame)):
        rows += rows_of(run, some, outputs, asked)
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def predict_proba(run: TrainedRun, images: Iterable[Given] | Given) -> np.ndarray:
    """Probabilities N×K, calibrated where the run has a temperature; NaN for an image without an answer."""
    parts = [np.empty((0, len(run.class_names)))]
    for some, outputs in outputs_of(run, decoded(images, run.config.data.frame)):
        found = np.full((len(some.names), len(run.class_names)), np.nan)
        if outputs:
            found[[not problem for problem in some.problems]] = calibrated(run, outputs[0]).numpy()
        parts.append(found)
    return np.concatenate(parts)


def outputs_of(run: TrainedRun, batches: Iterable[Decoded]) -> Iterator[tuple[Decoded, list[Outputs]]]:
    """Outputs of decoded images as they come, and those of the view that its score reads, if another."""
    score = run.fitted(run.rule.score)
    pixels = ((some, None if some.pixels is None else torch.from_numpy(some.pixels)) for some in batches)
    return stream_outputs(
        run.network,
        pixels,
        run.config.data,
        run.device,
        precision=run.config.precision,
        changes=(None, view_change(run, score)) if score.view else (None,),
    )


def rows_of(
    run: TrainedRun, some: Decoded, outputs: list[Outputs], asked: Asked = PLAIN
) -> Iterator[dict[str, Any]]:
    """A row for each of the images, which `outputs_of` gave the outputs of."""
    found = answers(run, outputs[0], outputs[-1], asked) if outputs else iter(())
    for name, problem in zip(some.names, some.problems, strict=True):
        yield {"path": name, **({"error": problem} if problem else next(found))}


def calibrated(run: TrainedRun, outputs: Outputs) -> torch.Tensor:
    """softmax(z/T) with the run's temperature, 1 where it has none; N×K float64, NaN for outputs that are not
    finite."""
    probabilities = (outputs.logits.double() / (run.temperature or 1.0)).softmax(dim=1)
    return probabilities.masked_fill(~is_finite(outputs)[:, None], torch.nan)


def answers(
    run: TrainedRun, outputs: Outputs, read: Outputs, asked: Asked = PLAIN
) -> Iterator[dict[str, Any]]:
    """The answers that follow from outputs, and from those of the view that the run's score reads.

    Restricted to some classes, probabilities are over these alone, and so is a score that follows from logits
    by itself; one that was fitted on training images stays as it is.
    """
    score, names, finite = run.fitted(run.rule.score), run.class_names, is_finite(outputs)
    if asked.allowed is not None:
        names, columns = asked.allowed.names, asked.allowed.columns
        outputs, read = outputs.only(columns), read if score.needs_fit else read.only(columns)
    probabilities, labels = outputs.probabilities().topk(min(TOP, len(names)), dim=1)
    scored = scored_by(score, read)
    near = asked.nearest(outputs.features) if asked.nearest else None
    believed: list[float] | None = None
    if run.temperature is not None:
        believed = calibrated(run, outputs).gather(1, labels[:, :1])[:, 0].tolist()
    reachability = None if outputs.reachability is None else outputs.reachability.tolist()
    unknown, unknown_scores = run.rule.rejects(scored.values).tolist(), scored.unknown.tolist()
    sound = (finite & ~scored.values.isnan()).tolist()
    # As lists: a tensor's entries one by one would take longer than a GPU takes for the image.
    for i, (top, shares) in enumerate(zip(labels.tolist(), probabilities.tolist(), strict=True)):
        if not sound[i]:  # no comparison with NaN holds: it would pass for known
            yield {"error": NOT_FINITE}
            continue
        second = len(top) > 1
        row = {
            "label": names[top[0]],
            "probability": shares[0],
            "unknown": unknown[i],
            "unknown_score": unknown_scores[i],
            "reachability": None if reachability is None else reachability[i],
            "second_label": names[top[1]] if second else None,
            "second_probability": shares[1] if second else None,
            "error": "",
            "calibrated_probability": None if believed is None else believed[i],
            "top5": {names[k]: round(share, 6) for k, share in zip(top, shares, strict=True)},
        }
        yield row if near is None else row | {"nearest": near[i]}


def is_finite(outputs: Outputs) -> torch.Tensor:
    """Which images have an output to go by: N bool."""
    return outputs.logits.isfinite().all(dim=1)


def as_images(pixels: np.ndarray) -> Images:
    """Decoded images n×S×S×3 of no known label, open for reading."""
    number = len(pixels)
    return Images(pixels.shape[1], np.full(number, -1), np.arange(number), torch.from_numpy(pixels))
