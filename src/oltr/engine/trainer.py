"""Lightning's trainer for one stage, told to keep out of what is ours: checkpoints, progress, samplers."""

from __future__ import annotations

import logging
import warnings
from datetime import timedelta
from pathlib import Path

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.plugins.environments import SLURMEnvironment, TorchElasticEnvironment
from lightning.pytorch.strategies import DDPStrategy

from oltr.engine.console import process_rank
from oltr.engine.options import FitOptions
from oltr.errors import UserError

# How long processes wait for one that does not come: longer than any takes to read its images, and no longer.
PATIENCE = timedelta(minutes=10)


def make_trainer(
    device: torch.device,
    options: FitOptions,
    folder: Path,
    stage: int,
    epochs: int,
    *,
    validate: bool,
) -> Trainer:
    """A trainer for `epochs` epochs of a stage, on the devices that the options ask for."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    # With `deterministic`, every new tensor would first be filled with NaN: a sixth of a small network's step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    on_gpu, several = device.type == "cuda", options.devices * options.nodes > 1
    _check_started(options)
    if on_gpu and options.devices > torch.cuda.device_count():
        raise UserError(f"--devices {options.devices}: there are {torch.cuda.device_count()} GPUs here.")
    return Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=options.devices,
        num_nodes=options.nodes,
        strategy=DDPStrategy(timeout=PATIENCE) if several else "auto",
        plugins=_environment(),
        precision="32-true",  # bfloat16 is the step's own: see `precision.py`
        max_epochs=epochs,
        deterministic="warn",
        reload_dataloaders_every_n_epochs=1,
        use_distributed_sampler=False,
        limit_val_batches=1.0 if validate else 0,
        num_sanity_val_steps=0,
        enable_checkpointing=False,  # ours are taken where resuming is exact: between two epochs
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=_tensorboard(folder, stage) if options.tensorboard else False,
    )


def _check_started(options: FitOptions) -> None:
    """Refuse processes that were started in another number than the run is told to have."""
    asked, words = options.devices * options.nodes, f"--devices {options.devices} --nodes {options.nodes}"
    by_torchrun = TorchElasticEnvironment.detect()
    started = TorchElasticEnvironment().world_size() if by_torchrun else max(process_rank() + 1, asked)
    if started != asked:
        raise UserError(
            f"{words} makes {asked}, but {started} processes were started.",
            "--devices is their number on one machine, --nodes that of the machines.",
        )


def _environment() -> SLURMEnvironment | None:
    """SLURM without Lightning's own way of requeueing, which has checkpoints of its own; else as it finds out."""
    if TorchElasticEnvironment.detect() or not SLURMEnvironment.detect():
        return None
    return SLURMEnvironment(auto_requeue=False)


def _tensorboard(path: Path, stage: int) -> TensorBoardLogger:
    try:
        return TensorBoardLogger(path, name="tensorboard", version=f"stage{stage}")
    except ModuleNotFoundError:
        raise UserError("TensorBoard is not installed.", try_this="pip install 'oltr[tensorboard]'") from None
