"""SGD in which each role of the network learns at its own rate."""

from __future__ import annotations

from typing import Any

import torch

from oltr.config import StageConfig
from oltr.nn.network import Network


def make_optimizer(network: Network, stage: StageConfig, fused: bool) -> torch.optim.SGD:
    """One group per role, with its rate before the schedule as `base_lr`."""
    rates = {"classifier": stage.classifier_lr, "memory": stage.memory_lr}
    groups: dict[str, list[torch.nn.Parameter]] = {}
    for role, parameter in network.roles():
        if parameter.requires_grad:
            groups.setdefault(role, []).append(parameter)
    return torch.optim.SGD(
        [
            {"params": parameters, "base_lr": rates.get(role, stage.lr), "role": role}
            for role, parameters in groups.items()
        ],
        lr=stage.lr,
        momentum=stage.momentum,
        weight_decay=stage.weight_decay,
        fused=fused,
    )


def load_momentum(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """The momentum of a saved state; rates and options stay as the configuration has made them."""
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": saved["state"], "param_groups": groups})
