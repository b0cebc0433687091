"""Chosen images of a run, as the network sees them and as people do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from oltr.config import DataConfig
from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches
from oltr.data.image_access import Images
from oltr.runs.own_data import open_for

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

AT_A_TIME = 128


def chosen_images(run: TrainedRun, split: str, rows: np.ndarray) -> Images:
    """Those images of a split of the run's own data, in that order; no other file is opened."""
    manifest = run.manifest
    if manifest.pack is None:
        few = dataclasses.replace(manifest, table=manifest.rows(split).iloc[rows])
        return open_for(run, few, [split])[split]
    return subset(open_for(run, manifest, [split])[split], rows)


def subset(images: Images, rows: np.ndarray) -> Images:
    """Some of the images, in that order."""
    kept = None if images.rows is None else images.rows[rows]
    files = [images.files[row] for row in rows] if images.files else ()
    return dataclasses.replace(images, labels=images.labels[rows], rows=kept, files=files)


def views_of(
    run: TrainedRun, images: Images, progress: Callable[[int, int], None] | None = None
) -> Iterator[Tensor]:
    """Batches of what the network sees of the images, B×3×s×s."""
    augment = Augment(run.config.data, run.device)
    batches = EvalBatches(images, augment, AT_A_TIME, run.device, run.workers)
    for number, (views, _) in enumerate(batches):
        yield views
        if progress:
            progress(min((number + 1) * AT_A_TIME, len(images)), len(images))


def as_pictures(views: Tensor, data: DataConfig) -> np.ndarray:
    """Normalised views as pictures again: N×3×s×s → N×s×s×3 uint8."""
    mean, std = (torch.tensor(each, device=views.device).view(1, 3, 1, 1) for each in (data.mean, data.std))
    pixels = (255 * (views * std + mean)).round().clamp(0, 255)
    return pixels.to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()


def pictures_of(run: TrainedRun, images: Images) -> np.ndarray:
    """What the network sees of a few images, as pictures: N×s×s×3 uint8."""
    return np.concatenate([as_pictures(part, run.config.data) for part in views_of(run, images)])
