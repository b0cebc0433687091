"""SGD or AdamW, in which each role of the network and each layer of its backbone learns at its own rate."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from oltr.config import StageConfig
from oltr.nn.network import Network
from oltr.training.layer_decay import layer_factors

# The steps before a CUDA graph is recorded are meant to run without it.
warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")


def make_optimizer(network: Network, stage: StageConfig, fused: bool) -> torch.optim.Optimizer:
    """One group per role and factor of its rate, with the rate before the schedule as `base_lr`."""
    groups = _groups(network, stage)
    if stage.optimizer == "adamw" or stage.weight_decay_on == "matrices":
        exempt = _exempt(network.backbone.net)
        groups = [part for group in groups for part in _by_weight_decay(group, stage.weight_decay, exempt)]
    if stage.optimizer == "sgd":
        return torch.optim.SGD(
            groups,
            lr=stage.lr,
            momentum=stage.momentum,
            nesterov=stage.nesterov,
            weight_decay=stage.weight_decay,
            fused=fused,
        )
    return torch.optim.AdamW(
        groups,
        lr=stage.lr,
        betas=(0.9, 0.999),
        fused=fused,
        capturable=fused,
    )


def load_momentum(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """The momentum of a saved state; rates and options stay as the configuration has made them."""
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": saved["state"], "param_groups": groups})


def _groups(network: Network, stage: StageConfig) -> list[dict[str, Any]]:
    """The parameters that learn, by role and layer factor."""
    rates = {"classifier": stage.classifier_lr, "memory": stage.memory_lr}
    factors = layer_factors(network.backbone.net, stage.layer_decay)
    groups: dict[tuple[str, float], list[torch.nn.Parameter]] = {}
    for role, parameter in network.roles():
        if parameter.requires_grad:
            groups.setdefault((role, factors.get(parameter, 1.0)), []).append(parameter)
    return [
        {"params": parameters, "base_lr": rates.get(role, stage.lr) * factor, "role": role}
        for (role, factor), parameters in groups.items()
    ]


def _exempt(net: Any) -> set[torch.nn.Parameter]:
    """Parameters that timm's networks keep out of weight decay, such as class tokens and positions."""
    names = net.no_weight_decay() if hasattr(net, "no_weight_decay") else ()
    return {parameter for name, parameter in net.named_parameters() if name in names}


def _by_weight_decay(
    group: dict[str, Any], weight_decay: float, exempt: set[torch.nn.Parameter]
) -> list[dict[str, Any]]:
    """A group in two: matrices and kernels with weight decay; biases, norms and other scales without."""
    decays = [parameter.ndim > 1 and parameter not in exempt for parameter in group["params"]]
    matrices = [parameter for parameter, does in zip(group["params"], decays, strict=True) if does]
    others = [parameter for parameter, does in zip(group["params"], decays, strict=True) if not does]
    parts = ((matrices, weight_decay), (others, 0.0))
    return [group | {"params": part, "weight_decay": decay} for part, decay in parts if part]
