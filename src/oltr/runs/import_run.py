"""A checkpoint of the released code as a run folder, which every verb can open."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from oltr.config import RunConfig
from oltr.console import console
from oltr.data.image_access import Images, open_images
from oltr.data.manifest import Manifest
from oltr.data.validate import COLUMNS
from oltr.errors import UserError
from oltr.files import unwritable
from oltr.nn.heads import MetaEmbeddingHead
from oltr.nn.network import Network
from oltr.nn.released_checkpoint import ReleasedCheckpoint, read_released
from oltr.recipes import load_recipe
from oltr.runs.report import Report
from oltr.runs.train_run import as_packed, measure_run
from oltr.training.build import build_method, build_network
from oltr.training.configure import recipe_config
from oltr.training.inference import class_means
from oltr.training.options import TrainOptions, training_device
from oltr.training.run_folder import RunFolder
from oltr.wording import count

RECIPES = {1000: "imagenet-lt", 365: "places-lt", 397: "sun-lt"}  # by the number of classes
OTHERWISE = "photos-released"


def import_run(
    file: Path, out: Path, manifest: Manifest | None = None, recipe: str | None = None, source: str = ""
) -> Report | None:
    """Write RUN from a checkpoint; with data also outputs on them and report.json, as training does.

    Class k of the file is the k-th class of the data. Without data classes are called 0 to K−1, have no
    training counts, and nothing is measured.
    """
    RunFolder(out).check_free()
    checkpoint = read_released(file)
    names = tuple(map(str, range(checkpoint.num_classes)))
    data = manifest or Manifest(pd.DataFrame(columns=list(COLUMNS), dtype=str), Path.cwd(), names)
    if len(data.classes) != checkpoint.num_classes:
        raise UserError(
            f"{file} knows {count(checkpoint.num_classes, 'class')}, the source has {len(data.classes):,}.",
            "Class k of the file is the k-th class of the source.",
            "the source that it was trained on",
        )
    config = as_packed(released_config(checkpoint, recipe), data)
    network = build_network(
        config, build_method(config, torch.from_numpy(data.train_counts())), checkpoint.stage
    )
    checkpoint.fill(network)
    device, out = training_device(options := TrainOptions()), out.absolute()
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        images = _open(data, config, device, with_train=not checkpoint.is_whole)
        if not checkpoint.is_whole:
            _start_memory(checkpoint, network, images.get("train"), config, device)
        folder = RunFolder(part)
        folder.begin(config, data, source, device)
        folder.write(folder.run() | {"imported": _origin(checkpoint)})
        folder.save_weights(folder.model, network.state_dict())
        if checkpoint.stage == 1:
            folder.save_weights(folder.stage_weights(1), network.state_dict())  # for --stage1-from
        folder.finish(0.0)
        report = measure_run(config, network, images, data, part, options)
        with unwritable(out):
            part.replace(out)  # an empty folder there gives way
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return report


def released_config(checkpoint: ReleasedCheckpoint, recipe: str | None = None) -> RunConfig:
    """The configuration of a run that would have learned it: the recipe's, with what the shapes tell."""
    recipe = recipe or RECIPES.get(checkpoint.num_classes, OTHERWISE)
    changes: dict[str, Any] = {"backbone": checkpoint.backbone, "weights": None, "precision": "float32"}
    changes["decision"] = {"score": "softmax", "threshold": 0.1, "unknown_rate": None}
    if checkpoint.stage == 1:
        # The released stage 1 alone, whatever the recipe's plain model does.
        changes |= {"stage1": load_recipe(recipe).run.get("stage1", {}), "stage2": None}
        changes["settings"] = {"fc": checkpoint.fc}
        return recipe_config(recipe, "plain", changes)
    changes["settings"] = {
        "attention": "modulated" if checkpoint.attention else "none",
        "attention_form": "released",
        "attention_start": "released",
        "fc": checkpoint.fc,
    }
    return recipe_config(recipe, "oltr", changes)


def _open(data: Manifest, config: RunConfig, device: torch.device, with_train: bool) -> dict[str, Images]:
    """The images that the run is measured on."""
    splits = [split for split, size in data.sizes().items() if size and (with_train or split != "train")]
    with console.progress("reading images") as progress:
        return open_images(data, splits, config.data.frame, config.data.image_size, device, progress)


def _start_memory(
    checkpoint: ReleasedCheckpoint,
    network: Network,
    train: Images | None,
    config: RunConfig,
    device: torch.device,
) -> None:
    """Centroids of an older file, which has none: class means, from which the released stage 2 starts."""
    if train is None:
        raise UserError(
            f"{checkpoint.path} has no centroids.",
            "Files of early versions have none; the means of the training images can stand in.",
            "--source SOURCE, with the images that it was trained on",
        )
    console.warn("the file has no centroids: the mean features of the training images stand in")
    classes = checkpoint.num_classes
    means = class_means(network.to(device), train, config.data, device, classes, precision=config.precision)
    assert isinstance(network.head, MetaEmbeddingHead) and network.head.meta.memory is not None
    network.head.meta.memory.start_from(means)


def _origin(checkpoint: ReleasedCheckpoint) -> dict[str, Any]:
    """Which file a run comes from, for run.yaml."""
    with checkpoint.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    origin = {"file": checkpoint.path.name, "sha256": digest, "stage": checkpoint.stage, **checkpoint.facts}
    if checkpoint.stage == 2:
        origin["centroids"] = "of the file" if checkpoint.is_whole else "class means"
    return origin
