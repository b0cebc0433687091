"""A run's method and untrained network from its configuration."""

from __future__ import annotations

import torch

from oltr.config import RunConfig
from oltr.methods import METHODS, Method
from oltr.nn.backbone import Backbone
from oltr.nn.multilevel import MultilevelBackbone
from oltr.nn.network import Network
from oltr.training.precision import cpu_has_bfloat16


def build_method(config: RunConfig, train_counts: torch.Tensor) -> Method:
    """The run's method with its own settings."""
    method = METHODS[config.method](config.settings, train_counts, config.data.image_size)
    method.backbone_frozen = config.ends_frozen
    return method


def build_network(config: RunConfig, method: Method, stage: int, weights: str | None = None) -> Network:
    """The untrained network of a stage; its random start depends on the seed and the stage alone."""
    torch.manual_seed(config.seed)
    network = method.build_stage1(build_backbone(config, weights))
    return build_stage2(config, method, network) if stage == 2 else network


def build_backbone(config: RunConfig, weights: str | None = None) -> Backbone:
    """The run's backbone; one that stays frozen gives features of several levels."""
    backbone = Backbone(config.backbone, config.data.image_size, weights)
    if config.train_backbone != "none":
        return backbone
    frozen = MultilevelBackbone(backbone)
    frozen.mirrors = config.data.test_flip
    frozen.bfloat16_on_cpu = config.precision == "auto" and cpu_has_bfloat16()
    return frozen


def build_stage2(config: RunConfig, method: Method, first: Network) -> Network:
    """The network of stage 2 on top of that of stage 1, on the CPU like every new network."""
    torch.manual_seed(config.seed + 2**32)
    method.to("cpu")
    network = method.build_stage2(first.cpu())
    if isinstance(network.backbone, MultilevelBackbone):
        network.backbone.mirrors = config.data.test_flip
    return network
