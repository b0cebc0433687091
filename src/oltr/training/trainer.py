"""Lightning's trainer for one stage, told to keep out of what is ours: checkpoints, progress, samplers."""

from __future__ import annotations

import logging
import warnings
from datetime import timedelta
from pathlib import Path

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy
from torch.distributed import DistError

from oltr.errors import UserError
from oltr.training.launcher import launcher
from oltr.training.options import FitOptions

PATIENCE = timedelta(minutes=10)  # for a process that does not come: longer than any takes to read its images


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
    # With `deterministic`, every new tensor would be filled with NaN: a sixth of a small network's step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    on_gpu, several = device.type == "cuda", options.devices * options.nodes > 1
    if on_gpu and options.devices > torch.cuda.device_count():
        raise UserError(f"--devices {options.devices}: there are {torch.cuda.device_count()} GPUs here.")
    return Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=options.devices,
        num_nodes=options.nodes,
        strategy=_Together(timeout=PATIENCE) if several else "auto",
        plugins=launcher(options),
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


class _Together(DDPStrategy):
    """Processes that share each batch, and say so if the others do not come."""

    def setup_distributed(self) -> None:
        try:
            super().setup_distributed()
        except DistError as problem:
            raise UserError(
                f"The {self.num_nodes * self.num_processes} processes of this run did not find each other.",
                str(problem).splitlines()[0],
                "the same command on every machine; what a machine says that stopped",
            ) from None


def _tensorboard(path: Path, stage: int) -> TensorBoardLogger:
    try:
        return TensorBoardLogger(path, name="tensorboard", version=f"stage{stage}")
    except ModuleNotFoundError:
        raise UserError("TensorBoard is not installed.", try_this="pip install 'oltr[tensorboard]'") from None
