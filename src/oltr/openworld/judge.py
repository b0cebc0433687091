"""Given images judged by a run, with the features that clusters are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from oltr.console import console
from oltr.runs.given_images import Given, decoded
from oltr.runs.predict import COLUMNS, answers, as_images
from oltr.runs.split_outputs import compute_outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


def judge(run: TrainedRun, images: Sequence[Given]) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns of predictions.csv for each of N images, and direct features N×D, NaN without an answer."""
    score = run.fitted(run.rule.score)
    rows: list[dict[str, Any]] = []
    features: list[np.ndarray] = []
    with console.progress("judging images") as progress:
        for some in decoded(images, run.config.data.frame):
            found: Iterable[tuple[dict[str, Any], np.ndarray]] = ()
            if some.pixels is not None:
                opened = as_images(some.pixels)
                outputs = compute_outputs(run, opened)
                read = compute_outputs(run, opened, score) if score.view else outputs
                found = zip(answers(run, outputs, read), outputs.features.numpy(), strict=True)
            found = iter(found)
            for name, problem in zip(some.names, some.problems, strict=True):
                told, feature = ({"error": problem}, np.empty(0)) if problem else next(found)
                rows.append({"path": name, **told})
                features.append(feature)
            progress(len(rows), len(images))
    dims = max((len(feature) for feature in features), default=0)
    gone = np.full(dims, np.nan, dtype=np.float32)
    stacked = [feature if len(feature) else gone for feature in features]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS), np.array(stacked).reshape(len(rows), dims)
