"""What of a network does not learn in a stage."""

from __future__ import annotations

from torch.nn.modules.batchnorm import _BatchNorm

from oltr.config import StageConfig
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.training.layer_decay import find_layers


def freeze(network: Network, stage: StageConfig, image_size: int, *, last_layer_only: bool = False) -> None:
    """Take the gradient from frozen roles and from parameters that no logit depends on, and from no other.

    With `last_layer_only` all of the backbone but its last layer is frozen, too; with one view of each image
    the auxiliary parts, which several are compared in. DDP waits for the gradient of every parameter that
    has one.
    """
    frozen = {*stage.frozen, *(["auxiliary"] if stage.views == 1 else [])}
    for role, parameter in network.roles():
        parameter.requires_grad_(role not in frozen)
    if last_layer_only:
        net, layers = network.backbone.net, find_layers(network.backbone.net)
        if layers is None:
            raise UserError(
                f"timm knows no layers of {type(net).__name__}.", try_this="--train-backbone none or all"
            )
        for name, parameter in net.named_parameters():
            if layers[name] < max(layers.values()):
                parameter.requires_grad_(False)
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
