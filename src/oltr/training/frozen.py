"""What of a network does not learn in a stage."""

from __future__ import annotations

from torch.nn.modules.batchnorm import _BatchNorm

from oltr.config import StageConfig
from oltr.nn.network import Network


def freeze(network: Network, stage: StageConfig, image_size: int) -> None:
    """Take the gradient from frozen roles and from parameters that no logit depends on, and from no other.

    DDP waits for the gradient of every parameter that has one.
    """
    for role, parameter in network.roles():
        parameter.requires_grad_(role not in stage.frozen)
    for parameter in network.idle_parameters(image_size):
        parameter.requires_grad_(False)


def set_training_mode(network: Network, stage: StageConfig) -> None:
    """Training mode, except for frozen roles whose statistics are frozen too, and norms that keep theirs."""
    network.train()
    if stage.freeze_statistics:
        for role in stage.frozen:
            if (part := getattr(network, role, None)) is not None:
                part.eval()
    if stage.keep_statistics:
        for module in network.backbone.modules():
            if isinstance(module, _BatchNorm):
                module.eval()
