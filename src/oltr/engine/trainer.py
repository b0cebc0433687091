"""Lightning's trainer for one stage, told to keep out of what is ours: checkpoints, progress, samplers."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from oltr.engine.options import FitOptions
from oltr.errors import UserError


def make_trainer(
    precision: str,
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
    on_gpu, several = device.type == "cuda", options.devices * options.nodes > 1
    low = precision == "bfloat16" or (precision == "auto" and on_gpu)
    if on_gpu and options.devices > torch.cuda.device_count():
        raise UserError(f"--devices {options.devices}: there are {torch.cuda.device_count()} GPUs here.")
    return Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=options.devices,
        num_nodes=options.nodes,
        strategy="ddp" if several else "auto",
        precision="bf16-mixed" if low else "32-true",
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


def _tensorboard(path: Path, stage: int) -> TensorBoardLogger:
    try:
        return TensorBoardLogger(path, name="tensorboard", version=f"stage{stage}")
    except ModuleNotFoundError:
        raise UserError("TensorBoard is not installed.", try_this="pip install 'oltr[tensorboard]'") from None
