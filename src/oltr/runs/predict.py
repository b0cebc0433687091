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
from oltr.runs.parents import PRECISION, Rollup, fit_rollup
from oltr.runs.read_ahead import Decoded
from oltr.runs.split_outputs import view_change
from oltr.runs.temperature import calibrated, is_finite

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
PARENT_COLUMNS = {"answer": "object", "answer_level": "object", "answer_probability": "float64"}
TOP = 5
NOT_FINITE = "the network's output is NaN or infinite"


@dataclass(frozen=True)
class Asked:
    """What is asked of a run beside its plain answers."""

    allowed: Allowed | None = None
    nearest: NearestImages | None = None
    rollup: Rollup | None = None  # answers by parents where the class is unsure

    @property
    def columns(self) -> dict[str, str]:
        """Those that come with it."""
        found = {} if self.nearest is None else {"nearest": "object"}
        return found | ({} if self.rollup is None else PARENT_COLUMNS)


PLAIN = Asked()


def asked_of(
    run: TrainedRun,
    only: str | Path | Sequence[str] | None = None,
    nearest: int = 0,
    parents: str | Path | None = None,
    precision: float = PRECISION,
) -> Asked:
    """`only`: the classes that can occur, as a list, comma-separated, or in a text file; `parents`: a table
    label,parent, by which the answer is a parent where the class is unsure."""
    allowed = None if only is None else allowed_classes(run.class_names, only)
    rollup = None if parents is None else fit_rollup(run, parents, precision)
    return Asked(allowed, NearestImages(run, nearest) if nearest else None, rollup)


def predict(
    run: TrainedRun,
    images: Iterable[Given] | Given,
    only: str | Path | Sequence[str] | None = None,
    nearest: int = 0,
    parents: str | Path | None = None,
    precision: float = PRECISION,
) -> pd.DataFrame:
    """The columns of predictions.csv; an image without an answer has the reason in `error` and no more."""
    asked = asked_of(run, only, nearest, parents, precision)
    columns = COLUMNS | asked.columns
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
    rolled = None
    if asked.rollup is not None:
        whole = torch.zeros(len(outputs), len(run.class_names), dtype=torch.float64)
        whole[:, slice(None) if asked.allowed is None else asked.allowed.columns] = calibrated(run, outputs)
        rolled = asked.rollup.answers(whole, run.rule.rejects(scored.values))
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
        if near is not None:
            row["nearest"] = near[i]
        if rolled is not None:
            row |= {
                "answer": rolled[i].answer,
                "answer_level": rolled[i].level,
                "answer_probability": rolled[i].probability,
            }
        yield row


def as_images(pixels: np.ndarray) -> Images:
    """Decoded images n×S×S×3 of no known label, open for reading."""
    number = len(pixels)
    return Images(pixels.shape[1], np.full(number, -1), np.arange(number), torch.from_numpy(pixels))
