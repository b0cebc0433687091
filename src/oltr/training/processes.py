"""The processes of a run: this one alone, or several by Lightning Fabric."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from oltr.console import process_rank
from oltr.training.options import TrainOptions, training_device

if TYPE_CHECKING:
    from lightning.fabric import Fabric

T = TypeVar("T")


class SingleProcess:
    """What the loop asks of Fabric, for one process on one device."""

    def __init__(self, device: torch.device):
        self.device = device

    def broadcast(self, value: T) -> T:
        return value

    def setup_module(self, module: nn.Module) -> nn.Module:
        return module.to(self.device)


def launch(options: TrainOptions) -> SingleProcess | Fabric:
    """All processes of the run started and connected, one per device."""
    make_deterministic()
    started_by_torchrun = "TORCHELASTIC_RUN_ID" in os.environ or "RANK" in os.environ
    if options.devices * options.nodes == 1 and process_rank() == 0 and not started_by_torchrun:
        return SingleProcess(training_device(options))
    from oltr.training.fabric import launch_fabric  # Lightning takes seconds to import

    return launch_fabric(options)


def make_deterministic() -> None:
    """Deterministic algorithms where torch has them, a warning where not."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Otherwise every new tensor would be filled with NaN: a sixth of a small network's step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"


@contextmanager
def stop_others_on_failure(processes: SingleProcess | Fabric) -> Iterator[None]:
    """Kill the processes that this one started if the block fails: they would wait for it in vain."""
    try:
        yield
    except BaseException:
        strategy: Any = getattr(processes, "strategy", None)
        started = getattr(getattr(strategy, "launcher", None), "procs", [])
        while started:  # emptied, as Fabric's observer kills this process when one of the list has failed
            started.pop().kill()
        raise
