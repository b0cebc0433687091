"""How a run is carried out, as against what it is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import torch

from oltr.device import best_device


@dataclass
class TrainOptions:
    """How to run, as against what: nothing here changes the result."""

    resume: bool = False
    stage1_from: Path | None = None  # a run whose stage 1 is taken instead of trained
    devices: int = 1
    nodes: int = 1
    workers: int = field(default_factory=lambda: min(8, os.cpu_count() or 1))
    tensorboard: bool = False
    accelerator: str = "auto"


def training_device(options: TrainOptions) -> torch.device:
    """The device on which this process trains."""
    local = os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", 0))
    return best_device(cpu=options.accelerator == "cpu", gpu=int(local) if options.devices > 1 else 0)
