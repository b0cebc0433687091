"""A run's own images as the figures of its network show them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.metrics.shots import GROUPS
from oltr.nn.heads import Output
from oltr.runs.explain.training_sample import training_sample
from oltr.runs.pictures import as_pictures, chosen_images, views_of
from oltr.runs.trained_run import TrainedRun
from oltr.samplers import generator
from oltr.training.at_test import forward_at_test
from oltr.training.precision import autocast

kept_sample = lru_cache(maxsize=1)(training_sample)  # two figures show it, and it is a pass over thousands


class ShownImages(NamedTuple):
    """A few of a run's test and open images."""

    views: Tensor  # N×3×s×s
    pictures: np.ndarray  # N×s×s×3 uint8
    names: list[str]


def own_data(run: TrainedRun) -> Manifest:
    """The run's own data; refused where they are gone or do not fit its outputs."""
    try:
        manifest = run.manifest
    except UserError as problem:
        raise UserError("The run's own images are not there any more.", problem.why) from None
    for split in ("test", "open"):
        images = len(run.outputs[split]) if split in run.outputs else 0
        if manifest.sizes()[split] != images:
            raise UserError(
                f"{run.name} has outputs of {images:,} {split} images, its data {manifest.sizes()[split]:,}.",
                try_this="training the run again",
            )
    return manifest


def shown_images(run: TrainedRun) -> ShownImages:
    """One test image of each shot group and one open image, drawn by the run's seed.

    Where the data have no test images, as faces that are identified elsewhere, training images are shown.
    """
    manifest = own_data(run)
    known = "test" if manifest.sizes()["test"] else "train"
    groups = np.append(run.groups, "open")
    views: list[Tensor] = []
    names: list[str] = []
    for place, kind in enumerate((*GROUPS, "open")):
        split = "open" if kind == "open" else known
        rows = np.flatnonzero(groups[manifest.labels(split)] == kind)  # label -1 takes the last
        if len(rows):
            number = generator(run.config.seed, place).choice(rows, 1)
            views += views_of(run, chosen_images(run, split, number))
            label = manifest.rows(split)["label"].iloc[int(number[0])]
            names.append(f"{label}\n(open)" if kind == "open" else f"{label}\n({kind}-shot)")
    if not views:
        raise UserError("The run has no images that could be looked at.")
    batch = torch.cat(views)
    return ShownImages(batch, as_pictures(batch, run.config.data), names)


def network_output(run: TrainedRun, views: Tensor) -> Output:
    """The network's output for views N×3×s×s."""
    with torch.inference_mode(), autocast(run.device, run.config.precision):
        return forward_at_test(run.network, views, run.config.data)
