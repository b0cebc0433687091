"""The training images that look most like an image, by the angle between features; collected ones too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.console import console
from oltr.errors import UserError
from oltr.runs.class_changes import with_collected

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

AT_A_TIME = 65536  # training images in one matrix product


class NearestImages:
    """A run's training images, ready for comparison; their features are computed once and kept in the run."""

    def __init__(self, run: TrainedRun, number: int):
        if number < 1:
            raise UserError(f"--nearest {number} is no number of images.", try_this="--nearest 3")
        if not (file := run.folder.outputs / "train.safetensors").is_file():
            console.say(f"reading the training images once, for {file}")
        manifest = run.manifest
        paths = manifest.rows("train")["path"]
        here = manifest.pack is None and manifest.items is None
        self.paths = [str(manifest.root / path) if here else path for path in paths]
        training = run.own_outputs()["train"]
        if len(self.paths) != len(training):
            raise UserError(
                f"{run.path} has outputs of {len(training)} training images, its source has "
                f"{len(self.paths)}.",
                "The two do not belong together.",
            )
        self.paths += [str(run.path / file) for each in run.changes.added for file in each.files]
        self.directions = F.normalize(with_collected(run, training)[0], dim=1)  # N×D
        self.number = min(number, len(self.paths))

    def __call__(self, features: Tensor) -> list[list[str]]:
        """Paths of the nearest images, the nearest first: B×D → B lists."""
        queries = F.normalize(features, dim=1)
        best = queries.new_full((len(queries), self.number), -torch.inf)
        rows = torch.zeros(best.shape, dtype=torch.int64)
        for start in range(0, len(self.directions), AT_A_TIME):
            near = queries @ self.directions[start : start + AT_A_TIME].T
            near, where = near.topk(min(self.number, near.shape[1]), dim=1)
            best, order = torch.cat([best, near], dim=1).topk(self.number, dim=1)
            rows = torch.cat([rows, where + start], dim=1).gather(1, order)
        return [[self.paths[row] for row in found] for found in rows.tolist()]
