"""Pretrained layers learn the more slowly the nearer they are to the pixels."""

from __future__ import annotations

import warnings
from typing import Any

from timm.models import group_parameters
from torch import nn


def layer_factors(net: Any, decay: float) -> dict[nn.Parameter, float]:
    """decay**(distance from the top) for each parameter that learns; none if all learn at the full rate.

    Layers are timm's coarse groups: the stem, then each stage. The top is the last group that learns.
    """
    if decay == 1:
        return {}
    layers = find_layers(net)
    if layers is None:
        warnings.warn(f"timm knows no layers of {type(net).__name__}: layer_decay does not change its rates.")
        return {}
    learns = {name: parameter for name, parameter in net.named_parameters() if parameter.requires_grad}
    top = max((layers[name] for name in learns), default=0)
    return {parameter: decay ** (top - layers[name]) for name, parameter in learns.items()}


def find_layers(net: Any) -> dict[str, int] | None:
    """The number of each parameter's layer, from the stem on; None where timm knows no layers."""
    try:
        matcher = net.group_matcher(coarse=True)
    except (AttributeError, AssertionError):  # of timm's nets a few have none, or none that is coarse
        return None
    return group_parameters(net, matcher, reverse=True)
