"""Chosen images of a split, as the network sees them and as people do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from oltr.config import DataConfig, RunConfig
from oltr.console import Console
from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches
from oltr.data.image_access import Images
from oltr.data.manifest import Manifest
from oltr.runs.read_outputs import images_for
from oltr.runs.run_outputs import best_device
from oltr.training.options import TrainOptions

AT_A_TIME = 128


def chosen_images(
    config: RunConfig, manifest: Manifest, split: str, numbers: np.ndarray, console: Console
) -> Images:
    """Those images of a split, in that order; no other file is opened."""
    if manifest.pack is None:
        few = dataclasses.replace(manifest, table=manifest.rows(split).iloc[numbers])
        return images_for(config, few, [split], console)[split]
    return subset(images_for(config, manifest, [split], console)[split], numbers)


def subset(images: Images, numbers: np.ndarray) -> Images:
    """Some of the images, in that order."""
    rows = None if images.rows is None else images.rows[numbers]
    files = [images.files[number] for number in numbers] if images.files else ()
    return dataclasses.replace(images, labels=images.labels[numbers], rows=rows, files=files)


def views_of(
    images: Images,
    config: RunConfig,
    device: torch.device,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Tensor]:
    """Batches of what the network sees of the images, B×3×s×s."""
    batches = EvalBatches(images, Augment(config.data, device), AT_A_TIME, device, TrainOptions().workers)
    for number, (views, _) in enumerate(batches):
        yield views
        if progress:
            progress(min((number + 1) * AT_A_TIME, len(images)), len(images))


def pictures_of(views: Tensor, data: DataConfig) -> np.ndarray:
    """Views as pictures again, in the colours they had: N×3×s×s → N×s×s×3 uint8."""
    mean, std = (torch.tensor(each, device=views.device).view(1, 3, 1, 1) for each in (data.mean, data.std))
    pixels = (255 * (views * std + mean)).round().clamp(0, 255)
    return pixels.to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()


def all_pictures(images: Images, config: RunConfig) -> np.ndarray:
    """What the network sees of a few images, as pictures: N×s×s×3 uint8."""
    views = views_of(images, config, best_device())  # where a pack may live
    return np.concatenate([pictures_of(part, config.data) for part in views])
