"""Several processes and devices, by Lightning Fabric; the only module that imports Lightning."""

from __future__ import annotations

import logging
import warnings
from datetime import timedelta

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from lightning.fabric.strategies import DDPStrategy
from torch.distributed import DistError

from oltr.console import process_rank
from oltr.errors import UserError
from oltr.training.options import TrainOptions, training_device

PATIENCE = timedelta(minutes=10)  # for a process that is late: longer than reading the images takes


def launch_fabric(options: TrainOptions) -> Fabric:
    """Fabric with all processes of the run started and connected, one per device."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    on_gpu = training_device(options).type == "cuda"
    if on_gpu and options.devices > torch.cuda.device_count():
        raise UserError(f"--devices {options.devices}: there are {torch.cuda.device_count()} GPUs here.")
    environment = cluster_environment(options)
    fabric = Fabric(
        accelerator="cuda" if on_gpu else "cpu",
        devices=options.devices,
        num_nodes=options.nodes,
        strategy=_DDP(timeout=PATIENCE) if options.devices * options.nodes > 1 else "auto",
        plugins=environment,
        precision="32-true",  # bfloat16 is the step's own: see `precision.py`
    )
    fabric.launch()
    return fabric


def cluster_environment(options: TrainOptions) -> ClusterEnvironment | None:
    """What tells a process its rank: torchrun, SLURM, or None to let Fabric find out.

    Refused if the processes that were started are not as many as the options say.
    """
    devices, nodes = options.devices, options.nodes
    try:
        found = _detect(alone=devices * nodes == 1)
        if found is not None:
            found.validate_settings(devices, nodes)
        if process_rank() >= devices * nodes:
            raise ValueError(f"There is a process number {process_rank()}, counted from 0.")
    except (RuntimeError, ValueError) as problem:
        raise UserError(
            f"--devices {devices} --nodes {nodes} does not fit the processes that were started.",
            str(problem),
            "--devices with the processes on one machine, --nodes with the machines",
        ) from None
    return found


def _detect(alone: bool) -> ClusterEnvironment | None:
    if TorchElasticEnvironment.detect():
        return TorchElasticEnvironment()
    if alone:
        return LightningEnvironment()  # inside a SLURM job too, whose tasks are then not ours
    if SLURMEnvironment.detect():
        return SLURMEnvironment()
    return None


class _DDP(DDPStrategy):
    """Processes that share each batch; a UserError if they do not find each other."""

    def setup_environment(self) -> None:
        try:
            super().setup_environment()
        except DistError as problem:
            raise UserError(
                f"The {self.num_nodes * self.num_processes} processes of this run did not find each other.",
                str(problem).splitlines()[0],
                "the same command on every machine; what a machine says that stopped",
            ) from None
