"""Features of images by a run: the direct feature, and the meta-embedding where it has one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from oltr.console import console
from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.data.split import Flat
from oltr.data.validate import UNNAMED
from oltr.errors import UserError
from oltr.identify.feature_files import FORMS, is_feature_source, read_features
from oltr.identify.samples import Samples, split_rows
from oltr.nn.heads import Output
from oltr.runs.own_data import open_for
from oltr.runs.trained_run import TrainedRun
from oltr.training.inference import forward_batches, on_host


def list_samples(source: str, by_run: bool, training: bool = False) -> Samples:
    """Features from a file, or a source's images without features, where a run is to compute them.

    Of a source with splits its test and open images are taken, or its training images; of one without, all.
    """
    if is_feature_source(source):
        return read_features(source)
    if not by_run and not Path(source).expanduser().exists():
        raise UserError(f"There is no file or folder {source}.", f"A feature file is {FORMS}.")
    if not by_run:
        raise UserError(
            f"{source} holds no features, and no run was named to compute them.",
            f"A feature file is {FORMS}.",
            "oltr identify RUN ..., for images",
        )
    flat: Flat = "train" if training else "test"
    manifest = read_source(source, flat=flat)
    samples = manifest_samples(source, manifest, training)
    if len(samples) < len(manifest.table):
        which = "for training" if training else "of its splits test and open"
        console.say(f"{source}: {len(samples):,} of {len(manifest.table):,} images, those {which}")
    return samples


def manifest_samples(name: str, manifest: Manifest, training: bool = False) -> Samples:
    """Test and open images of a manifest, or its training images, without features."""
    splits = tuple(each for each in (("train",) if training else ("test", "open")) if manifest.sizes()[each])
    if not splits:
        raise UserError(f"{name} has no {'training' if training else 'test or open'} images.")
    table = manifest.table.iloc[split_rows(manifest, splits)]
    unnamed = (table["split"] == "open") & (table["label"] == UNNAMED)
    return Samples(
        name,
        {},
        table["label"].mask(unnamed, "").to_numpy(dtype=object),
        table["path"].to_numpy(dtype=object),
        str(manifest.root) if manifest.pack is None and manifest.items is None else None,
        (manifest, splits),
    )


def embedded(samples: Samples, run: TrainedRun | None) -> Samples:
    """The samples with their features, computed by the run unless they come from a file."""
    if samples.features or samples.images is None or run is None:
        return samples
    features: dict[str, list[Tensor]] = {}
    manifest, splits = samples.images
    for split in splits:
        for name, part in _embedded(run, manifest, split, f"features of {samples.name}").items():
            features.setdefault(name, []).append(part)
    return replace(samples, features={each: torch.cat(parts) for each, parts in features.items()})


def _embedded(run: TrainedRun, manifest: Manifest, split: str, what: str) -> dict[str, Tensor]:
    """The features of a split, in order; logits are not kept, which a million images have too many of."""
    images = open_for(run, manifest, [split])[split]
    found: dict[str, Tensor] = {}
    done = 0
    with console.progress(what) as progress:
        outputs = forward_batches(
            run.network,
            images,
            run.config.data,
            run.device,
            precision=run.config.precision,
            workers=run.workers,
            progress=progress,
        )
        for batch in on_host(map(_kept, outputs), run.device):
            end = done + len(batch["direct"])
            for name, part in batch.items():
                found.setdefault(name, torch.empty(len(images), part.shape[1]))[done:end] = part
            done = end
    return found


def _kept(output: Output) -> dict[str, Tensor]:
    found = {"direct": output.direct_feature, "meta": output.meta_embedding}
    return {name: part for name, part in found.items() if part is not None}
