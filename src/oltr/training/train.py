"""Training from a manifest to a run folder, stage by stage, resumable at every epoch."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from oltr.config import RunConfig
from oltr.console import console, process_rank
from oltr.data.broken import check_readable
from oltr.data.image_access import Images, fits_in_memory, open_images
from oltr.data.manifest import Manifest
from oltr.distributed import rank
from oltr.errors import UserError
from oltr.methods import Method
from oltr.nn.multilevel import MultilevelBackbone
from oltr.nn.network import Network
from oltr.training.adjust import adjust
from oltr.training.build import build_method, build_network, build_stage2
from oltr.training.eval_size import check_eval_size, choose_eval_size
from oltr.training.features import frozen_features
from oltr.training.fit import fit_stage, prepare_features
from oltr.training.inference import embed_images
from oltr.training.metrics_file import write_metrics
from oltr.training.options import TrainOptions
from oltr.training.processes import launch, stop_others_on_failure
from oltr.training.resume import Start, find_start
from oltr.training.run_folder import RunFolder
from oltr.training.stage import Run, train_stage
from oltr.training.teacher import load_teacher
from oltr.training.tensorboard import check_tensorboard
from oltr.wording import count


def train(
    config: RunConfig, manifest: Manifest, out: str | Path, options: TrainOptions, source: str = ""
) -> tuple[Network, dict[str, Images], RunConfig]:
    """Train a run; returns the network with the kept weights, the images, still open, and the configuration
    with what was chosen in training."""
    check_trainable(manifest)
    folder, start = RunFolder(out), Start()
    method = build_method(config, torch.from_numpy(manifest.train_counts()))
    check_method(method, config.method)
    check_eval_size(config, method.train_counts)
    teacher = load_teacher(config, manifest)
    resuming = options.resume and (folder.path / "run.yaml").exists()
    if process_rank() == 0:  # before the other processes are started
        if options.tensorboard:
            check_tensorboard()
        if resuming:
            folder.check_same(config, manifest)
        else:
            folder.check_free()
        start = find_start(folder, config, method, manifest, options)
        start.eval_size = folder.run().get("eval_size") if resuming else None
        if not resuming and config.train_backbone != "none":
            _try_files(manifest, config.data.stored_size)

    processes = launch(options)
    with stop_others_on_failure(processes):
        start = processes.broadcast(start)
        if start.eval_size is not None:
            config = config.seen_at(start.eval_size)
        if config.train_backbone == "none":
            images = frozen_features(config, manifest, processes.device, kept_features(folder))
        else:
            images = _open_all(manifest, config, processes.device)
        run = Run(
            config,
            method,
            folder,
            images,
            processes,
            options.workers,
            options.tensorboard,
            teacher,
            start.history,
        )
        try:
            if rank() == 0 and not resuming:
                folder.begin(config, manifest, source, processes.device)
            network = _train_stages(run, start)
            _finish(run, network)
        except BaseException:
            if rank() == 0 and not resuming and not folder.can_resume():
                folder.discard()
            raise
    return network, run.images, run.config


def _train_stages(run: Run, start: Start) -> Network:
    """The stages one after another; what was finished earlier is not trained again."""
    config, method = run.config, run.method
    network = build_network(config, method, 1, weights=config.weights)
    for number in range(1, config.num_stages + 1):
        if number == 2:
            first, network = network, build_stage2(config, method, network)
            if isinstance(network.backbone, MultilevelBackbone) and config.train_backbone != "none":
                choose_eval_size(run, first)  # before its features are computed
        _train_stage(run, number, network, start)
    if not isinstance(network.backbone, MultilevelBackbone):
        choose_eval_size(run, network)
    return network


def _train_stage(run: Run, number: int, network: Network, start: Start) -> None:
    """One stage: fitted, trained from the start or from a checkpoint, or loaded."""
    if number >= start.stage:
        prepare_features(run, network)
        if fit_stage(run, number, network):
            return
    if number == start.stage:
        train_stage(run, number, network, start.checkpoint)
    elif number > start.stage:
        train_stage(run, number, network)
    elif number == start.stage - 1 and start.weights is not None:
        network.load_state_dict(start.weights)
        if number == run.config.num_stages:  # nothing is left to train
            network.to(run.device).to(memory_format=torch.channels_last)  # as training leaves it
            if rank() == 0:
                run.folder.save_weights(run.folder.stage_weights(number), network.state_dict())
                write_metrics(run.folder.metrics, run.history)


def _finish(run: Run, network: Network) -> None:
    """What the method and then the adjustment set; then the model is saved and the run marked as finished."""

    def features(split: str = "val") -> tuple[Tensor, Tensor] | None:
        if split not in run.images:
            return None
        return embed_images(
            network.to(run.device),
            run.images[split],
            run.config.data,
            run.device,
            precision=run.config.precision,
            workers=run.workers,
        )

    if remark := run.method.after_training(network, features):
        console.say(remark)
    network.auxiliary = None  # no output depends on it
    adjustment = adjust(network, run)
    if rank() == 0:
        run.folder.save_weights(run.folder.model, network.state_dict())
        seconds = sum(row["seconds"] for row in run.history)
        run.folder.finish(seconds, remark=remark, adjustment=adjustment and asdict(adjustment))


def kept_features(folder: RunFolder) -> Path:
    """Where the features of images are kept: beside the run, for others like it."""
    kept = folder.path.absolute().parent / "features"
    if folder.path.absolute() == kept:
        raise UserError("--out features is no place for a run.", "Features are kept there.", "another --out")
    return kept


def check_method(method: Method, name: str) -> None:
    """Refuse parameters outside the network: no optimiser group would hold them."""
    if learnable := [place for place, parameter in method.named_parameters() if parameter.requires_grad]:
        raise UserError(
            f"The method {name} has parameters of its own: {', '.join(learnable)}.",
            "Only the parameters of its network are trained.",
            "make them part of the head that build_stage1 or build_stage2 returns",
        )


def check_trainable(manifest: Manifest) -> None:
    """Refuse data that cannot be learned from."""
    if not manifest.sizes()["train"]:
        raise UserError("There are no training images.", try_this="a source with a train split")
    if len(manifest.classes) < 2:
        raise UserError(
            f"There is only one class ({manifest.classes[0]}).",
            "Recognition needs at least two.",
        )


def _try_files(manifest: Manifest, size: int) -> None:
    """Refuse images that cannot be read now, where training would come to them hours later."""
    tried = manifest.skipped is not None or fits_in_memory(len(manifest.table), size)
    if manifest.items is None and not tried:
        with console.progress("trying images") as progress:
            check_readable(manifest, progress=progress)


def _open_all(manifest: Manifest, config: RunConfig, device: torch.device) -> dict[str, Images]:
    """The images of every split, as near to the device as they fit."""
    splits = [split for split, size in manifest.sizes().items() if size]
    with console.progress("reading images") as progress:
        images = open_images(manifest, splits, config.data.frame, config.data.image_size, device, progress)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    where = name or f"CPU ({count(torch.get_num_threads(), 'thread')})"
    console.say(f"images from {images['train'].home}; training on {where}, seed {config.seed}")
    return images
