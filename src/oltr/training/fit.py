"""Training from a manifest to a run folder, stage by stage, resumable at every epoch."""

from __future__ import annotations

from pathlib import Path

import torch

from oltr.config import RunConfig
from oltr.console import Console, process_rank
from oltr.data.augment import Augment
from oltr.data.batches import batch_size
from oltr.data.image_access import Images, open_images
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.training.build import build_method
from oltr.training.input_rate import input_rate
from oltr.training.options import FitOptions, training_device
from oltr.training.run_folder import RunFolder
from oltr.training.stages import Stages
from oltr.wording import count


def fit(
    config: RunConfig,
    manifest: Manifest,
    out: str | Path,
    console: Console,
    options: FitOptions,
    source: str = "",
) -> tuple[Network, dict[str, Images]]:
    """Train a run; returns the network with the kept weights, and the images, still open."""
    folder = RunFolder(out)
    check_trainable(manifest)
    method = build_method(config, torch.from_numpy(manifest.train_counts()))
    going_on = options.resume and (folder.path / "run.yaml").exists()
    if process_rank() == 0:
        if options.stage1_from is not None:
            RunFolder(options.stage1_from).run()  # says so if it is none
        if going_on:
            folder.check_same(config, manifest)
        else:
            folder.check_free()
    device = training_device(options)
    splits = [split for split, size in manifest.sizes().items() if size]
    with console.progress("reading images") as progress:
        images = open_images(
            manifest, splits, config.data.stored_size, config.data.image_size, device, progress
        )
    _say_input(images["train"], config, console, options, device)
    run = Stages(config, method, folder, images, console, options, device)
    try:
        if process_rank() == 0 and not going_on:
            folder.begin(config, manifest, source, device)
        network = run.train()
    except BaseException:
        if process_rank() == 0 and not going_on and not folder.last.is_file():
            folder.discard()  # not one epoch to go on from
        raise
    return network, images


def check_trainable(manifest: Manifest) -> None:
    """Refuse data that cannot be learned from."""
    if not manifest.sizes()["train"]:
        raise UserError("There are no training images.", try_this="a source with a train split")
    if len(manifest.classes) < 2:
        raise UserError(
            f"There is only one class ({manifest.classes[0]}).",
            "Recognition needs at least two.",
        )


def _say_input(
    images: Images, config: RunConfig, console: Console, options: FitOptions, device: torch.device
) -> None:
    """Where the images lie, how many a second come from there, and where they are learned from."""
    if console.screen.quiet:
        return  # the measurement would be for nobody
    batch = batch_size(config.stage1, len(images))
    rate = input_rate(images, Augment(config.data, device), batch, device, options.workers)
    where = f"training on {_device_name(device)}, seed {config.seed}"
    console.say(f"images from {images.home}: {rate.words()}; {where}")


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({count(torch.get_num_threads(), 'thread')})"
