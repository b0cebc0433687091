"""The learning rates of a stage, epoch by epoch or step by step."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from oltr.config import StageConfig


class LearningRates:
    """Sets the rate of each optimiser group: base_lr · lr_factor, once an epoch or before each step.

    On a GPU they are float32 tensors there, which a fused optimiser reads in each step: a CUDA graph recorded
    once serves every rate. An epoch's rates are sent at its start (steps × groups); a step copies its row on
    the device, one small copy that the host does not wait for.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, stage: StageConfig, device: torch.device):
        self.groups, self.stage = optimizer.param_groups, stage
        self.on_device: Tensor | None = None
        if device.type == "cuda":
            self.on_device = torch.zeros(len(self.groups), device=device)
            for group, rate in zip(self.groups, self.on_device, strict=True):
                group["lr"] = rate  # a view of its entry

    def start_epoch(self, epoch: int, steps: int) -> None:
        """The rates of an epoch of so many steps; those of its first step are set."""
        factors = self._factors(epoch, steps)
        self.mean_factor = fmean(factors)
        rows = [[group["base_lr"] * factor for group in self.groups] for factor in factors]
        self.rows: list[Any] = rows
        if self.on_device is not None:
            self.rows = list(torch.tensor(rows, device=self.on_device.device))
        self.set(0)

    def set(self, step: int) -> None:
        """The rates of this step (from 0), if they are others than the last step's."""
        if step >= len(self.rows):
            return
        if self.on_device is not None:
            self.on_device.copy_(self.rows[step])
            return
        for group, rate in zip(self.groups, self.rows[step], strict=True):
            group["lr"] = rate

    def _factors(self, epoch: int, steps: int) -> list[float]:
        if self.stage.lr_every == "epoch":
            return [self.stage.lr_factor(epoch)]
        return [self.stage.lr_factor(epoch, step, steps) for step in range(steps)]
