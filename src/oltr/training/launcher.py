"""Who started the processes of a run, and whether there are as many as it was told to have."""

from __future__ import annotations

from lightning.fabric.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)

from oltr.console import process_rank
from oltr.errors import UserError
from oltr.training.options import FitOptions


def launcher(options: FitOptions) -> ClusterEnvironment | None:
    """What tells a process its number: torchrun, SLURM, or None for Lightning to find out."""
    devices, nodes = options.devices, options.nodes
    try:
        found = _found(alone=devices * nodes == 1)
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


def _found(alone: bool) -> ClusterEnvironment | None:
    if TorchElasticEnvironment.detect():
        return TorchElasticEnvironment()
    if alone:
        return LightningEnvironment()  # inside a SLURM job too, whose tasks are then not ours
    if SLURMEnvironment.detect():
        return SLURMEnvironment(auto_requeue=False)  # Lightning would go on from checkpoints of its own
    return None
