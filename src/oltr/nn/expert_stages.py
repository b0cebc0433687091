"""Experts that share a backbone except for its last stage."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from oltr.errors import UserError
from oltr.nn.backbone import Backbone
from oltr.nn.multilevel import MultilevelBackbone


class ExpertStages(nn.Module):
    """Several stages on one input, their maps concatenated on the channels: B×C×H×W → B×(E·C′)×H′×W′."""

    def __init__(self, stages: list[nn.Module]):
        super().__init__()
        self.experts = nn.ModuleList(stages)

    def forward(self, f: Tensor) -> Tensor:
        return torch.cat([stage(f) for stage in self.experts], dim=1)


def give_experts(backbone: Backbone, experts: int, image_size: int) -> None:
    """Replace the last stage by `experts` copies of it, each with its own random initialisation.

    With pretrained weights all copies start from those.
    """
    if isinstance(backbone, MultilevelBackbone):
        raise UserError(
            "Experts need a last stage that learns.",
            "The backbone is frozen.",
            "--train-backbone all, or another method",
        )
    height, width = backbone.map_size
    wanted = (1, experts * backbone.channels, height, width)
    name = backbone.stages[-1] if backbone.stages else ""
    stage = backbone.net.get_submodule(name)
    if not name or not any(weight.ndim > 1 for weight in stage.parameters()):
        raise _no_experts("It has no named last stage with weights.")
    others = [copy.deepcopy(stage) for _ in range(experts - 1)]
    if not backbone.pretrained:
        for other in others:
            draw_again(other)
    backbone.net.set_submodule(name, ExpertStages([stage, *others]))
    backbone.channels *= experts
    info = getattr(backbone.net, "feature_info", None)
    if info:
        info[-1]["num_chs"] *= experts
    try:
        found = _map_shape(backbone, image_size)
    except Exception as problem:  # networks raise various errors for more channels
        raise _no_experts(f"The layers after {name} take a fixed number of channels.") from problem
    if found != wanted:
        raise _no_experts(f"The maps of several {name} cannot be concatenated.")


@torch.no_grad()
def draw_again(stage: nn.Module) -> None:
    """Another initialisation of the same distribution: each weight's entries, permuted."""
    for weight in stage.parameters():
        weight.copy_(weight.flatten()[torch.randperm(weight.numel())].view_as(weight))


@torch.no_grad()
def _map_shape(backbone: Backbone, image_size: int) -> tuple[int, ...]:
    training = backbone.training
    shape = backbone.eval()(torch.zeros(1, 3, image_size, image_size)).shape
    backbone.train(training)
    return tuple(shape)


def _no_experts(why: str) -> UserError:
    return UserError(
        "This backbone cannot be shared by experts.",
        why,
        "a ResNet, a RegNet or a ConvNeXt, e.g. --backbone resnet10",
    )
