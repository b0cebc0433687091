"""Features of a frozen backbone for all images of a run, each computed once and kept."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oltr.config import Frame, RunConfig
from oltr.console import console
from oltr.data.augment import Augment
from oltr.data.decode import decode_all
from oltr.data.features import as_features
from oltr.data.image_access import Images, open_images, resized
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.distributed import rank
from oltr.nn.multilevel import MultilevelBackbone
from oltr.training.build import build_backbone
from oltr.training.feature_cache import FeatureCache, cache_name, image_keys
from oltr.training.precision import autocast
from oltr.wording import count

BATCH = {"cpu": 32, "cuda": 128}  # images
WRITE_EVERY = 30  # seconds, after which the cache is written
TOLD_AFTER = 128  # images, from whose speed the whole time is estimated
VERSION = 2  # of what `resized` and `MultilevelBackbone.describe` compute: others are not used


def frozen_features(
    config: RunConfig, manifest: Manifest, device: torch.device, folder: Path
) -> dict[str, Images]:
    """The features of every split's images under the run's frozen backbone, from the cache or computed."""
    backbone = build_backbone(config, weights=config.weights)
    assert isinstance(backbone, MultilevelBackbone)
    backbone.to(device).eval().to(memory_format=torch.channels_last)
    open_images(manifest, [], config.data.frame, config.data.image_size, device)  # checks the sizes
    rows = list(range(len(manifest.table)))
    keys = image_keys(manifest, rows)
    if keys is None:
        say_work(len(rows), 0, config)
        values = torch.cat(list(_describe(backbone, manifest, rows, config, device)))
    else:
        view = _view(backbone, config, device)
        cache = FeatureCache(folder / cache_name(config.backbone, backbone.net, view), backbone.described)
        missing = list({keys[row]: row for row in rows if keys[row] not in cache}.values())
        say_work(len(missing), sum(key in cache for key in keys), config)
        _fill(cache, [keys[row] for row in missing], _describe(backbone, manifest, missing, config, device))
        values = cache[keys]
    return {
        split: as_features(manifest.labels(split), values[manifest.positions(split)].to(device))
        for split, size in manifest.sizes().items()
        if size
    }


def _view(backbone: MultilevelBackbone, config: RunConfig, device: torch.device) -> dict[str, Any]:
    """All that the features depend on beside weights and images."""
    data = config.data
    with autocast(device, config.precision):
        low = torch.is_autocast_enabled(device.type) or (device.type == "cpu" and backbone.bfloat16_on_cpu)
    view: dict[str, Any] = dataclasses.asdict(data.frame) | {
        "version": VERSION,
        "image_size": data.image_size,
        "mean": data.mean,
        "std": data.std,
        "bfloat16": low,
    }
    # Only where there was a choice: features that were kept before there was one still hold.
    if data.seen_size != data.image_size:
        view["eval_size"] = data.seen_size
    return view | ({"test_flip": True} if data.test_flip else {})


def _fill(cache: FeatureCache, keys: list[bytes], batches: Iterator[Tensor]) -> None:
    """Add features as they come; they are written now and then, and when something stops the work."""
    parts: list[Tensor] = []
    done, written = 0, time.monotonic()

    def add() -> None:
        nonlocal done, written
        if parts:
            values = torch.cat(parts)
            cache.add(keys[done : done + len(values)], values, write=rank() == 0)
            done, written = done + len(values), time.monotonic()
            parts.clear()

    try:
        for batch in batches:
            parts.append(batch)
            if time.monotonic() - written > WRITE_EVERY:
                add()
    finally:
        add()


def say_work(missing: int, kept: int, config: RunConfig) -> None:
    """What has to be computed, in one sentence."""
    if missing:
        others = f"; those of {count(kept, 'image')} are kept from before" if kept else ""
        console.say(f"computing the features of {count(missing, 'image')} with {config.backbone}{others}")
    else:
        console.say(f"the features of all {count(kept, 'image')} are kept from before")


@torch.inference_mode()
def _describe(
    backbone: MultilevelBackbone, manifest: Manifest, rows: list[int], config: RunConfig, device: torch.device
) -> Iterator[Tensor]:
    """The descriptors of those rows' images in order, on the host, a batch at a time."""
    augment, began, done = Augment(config.data, device), time.monotonic(), 0
    with console.progress("features") as progress:
        for batch in _batches(manifest, rows, config.data.frame, BATCH[device.type]):
            views = augment.evaluate(batch.to(device))
            with autocast(device, config.precision):
                described = backbone.describe(views.contiguous(memory_format=torch.channels_last))
            yield described.cpu()
            done += len(batch)
            progress(done, len(rows))
            if done - len(batch) < TOLD_AFTER <= done < len(rows):
                _say_time(done / (time.monotonic() - began), len(rows) - done)


def _say_time(images_per_second: float, left: int) -> None:
    seconds = left / images_per_second
    if seconds < 10:
        return
    console.say(
        f"{images_per_second:.0f} images/s: about {seconds // 60:.0f}:{seconds % 60:02.0f} min for the "
        "other features, then seconds for the head"
    )


def _batches(manifest: Manifest, rows: list[int], frame: Frame, size: int) -> Iterator[Tensor]:
    """The pixels of those rows as uint8 B×3×S×S."""
    if manifest.pack is not None:
        pack = open_pack(manifest.pack)
        pixels: Iterator[np.ndarray] = (pack.images[row] for row in rows)
    else:
        paths = manifest.table["path"].to_numpy()
        pixels = decode_all(manifest, [paths[row] for row in rows], frame, total=len(manifest.table))
    while batch := list(itertools.islice(pixels, size)):
        stacked = torch.from_numpy(np.stack(batch)).permute(0, 3, 1, 2)
        yield stacked if stacked.shape[2] <= frame.size else resized(stacked, frame.size)
