"""Given images judged by a run, with the features that clusters are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from oltr.console import console
from oltr.runs.given_images import Given, decoded
from oltr.runs.predict import COLUMNS, outputs_of, rows_of

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


def judge(run: TrainedRun, images: Sequence[Given]) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns of predictions.csv for each of N images, and direct features N×D, NaN if unreadable."""
    rows: list[dict[str, Any]] = []
    readable: list[bool] = []
    found: list[np.ndarray] = []
    with console.progress("judging images") as progress:
        for some, outputs in outputs_of(run, decoded(images, run.config.data.frame)):
            rows += rows_of(run, some, outputs)
            readable += [not problem for problem in some.problems]
            found += [part.features.numpy() for part in outputs[:1]]
            progress(len(rows), len(images))
    features = np.full((len(rows), found[0].shape[1] if found else 0), np.nan, dtype=np.float32)
    if found:
        features[readable] = np.concatenate(found)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS), features
