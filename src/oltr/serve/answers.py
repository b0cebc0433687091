"""Answers from kept outputs of the trained network, for whatever classes a run knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oltr.runs.class_changes import changed_outputs
from oltr.runs.outputs import OPEN
from oltr.runs.predict import PLAIN, Asked, answers
from oltr.runs.predictions.rescore import Change, answer_of, change_of
from oltr.runs.trained_run import TrainedRun
from oltr.serve.batcher import Batcher
from oltr.serve.flat_outputs import from_rows, to_rows

Row = dict[str, Any]


class Answers:
    """Images to outputs, through the trained network, and outputs to answers, by a matrix product."""

    def __init__(self, batcher: Batcher):
        self.batcher, self.classes = batcher, len(batcher.run.class_names)
        side = batcher.run.config.data.stored_size
        first = batcher.outputs(np.zeros((1, side, side, 3), dtype=np.uint8))  # also sets everything up
        self.features = first.features.shape[1]

    def outputs(self, pixels: np.ndarray) -> np.ndarray:
        """n×S×S×3 uint8 → n×R, R numbers an image."""
        return to_rows(self.batcher.outputs(pixels))

    def __call__(self, run: TrainedRun, rows: np.ndarray, asked: Asked = PLAIN) -> list[Row]:
        """What the run answers, n×R → n rows of predictions.csv, without paths."""
        if not len(rows):
            return []
        outputs = from_rows(rows, self.features, self.classes)
        if run.changes:
            outputs = changed_outputs(outputs, run.added_rows, np.full(len(rows), OPEN))
        return list(answers(run, outputs, outputs, asked))


def changes_between(before: Mapping[str, Row], after: Mapping[str, Row]) -> dict[str, Change]:
    """Images, by id, with another answer than before."""
    return {
        number: change_of({**before[number], "path": number}, row)
        for number, row in after.items()
        if number in before and answer_of(before[number]) != answer_of(row)
    }
