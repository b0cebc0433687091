"""Any timm network as a function from images to one feature map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import timm
import torch
from torch import Tensor, nn

from oltr.errors import UserError
from oltr.nn import densenet_cifar, resnet10, resnet32_cifar  # noqa: F401  (registers them with timm)
from oltr.nn.layout import to_map
from oltr.nn.weights import find_weights, load_weights, resolve_weights
from oltr.plugins import import_reference, is_reference, load_backbones
from oltr.registry import unknown_name


@dataclass(frozen=True)
class Card:
    """How the images were prepared that a network's pretrained weights were trained on."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str
    input_size: int  # pixels
    crop_pct: float  # share of the resized image that the crop in the middle takes
    fixed_size: bool = False  # whether the network takes no other size well, as many ViTs


class Backbone(nn.Module):
    """f = backbone(images): B×3×S×S → B×C×H×W, whatever layout the network uses.

    Token networks (ViT) give their patch grid, channels-last ones (Swin) are permuted; a network without a
    map gives its vector as a 1×1 map and has `has_map = False`.
    """

    mirrors = False  # whether what it gives is a mean over the image and its mirror image already

    def __init__(self, name: str, image_size: int, weights: str | None = None):
        super().__init__()
        check_backbone(name, weights)
        name = timm_name(name)
        self.net = _create(name, image_size, pretrained=weights == "pretrained")
        self.pretrained = weights is not None
        if weights is not None and weights != "pretrained":
            load_weights(self.net, find_weights(weights))
        self.channels = int(self.net.num_features)
        self.prefix_tokens = int(getattr(self.net, "num_prefix_tokens", 0) or 0)
        try:
            self.map_size = self._probe(image_size)
        except Exception as problem:  # networks raise various errors for a size
            raise UserError(
                f"{name} gives no feature map for images of {image_size} px.",
                str(problem).partition("\n")[0],
                "another --image-size or --backbone",
            ) from problem
        self.has_map = self.map_size[0] * self.map_size[1] > 1

    def forward(self, images: Tensor) -> Tensor:
        return to_map(self.net.forward_features(images), self.channels, self.prefix_tokens)

    @property
    def stages(self) -> list[str]:
        """Names of the network's stages, first to last; empty where timm does not know them."""
        return [stage["module"] for stage in getattr(self.net, "feature_info", None) or []]

    @torch.no_grad()
    def _probe(self, image_size: int) -> tuple[int, int]:
        """Height and width of the map, found by one forward pass of a blank image."""
        training = self.net.training
        self.net.eval()
        height, width = self(torch.zeros(1, 3, image_size, image_size)).shape[2:]
        self.net.train(training)
        return int(height), int(width)


def check_backbone(name: str, weights: str | None) -> None:
    """Refuse an unknown network or missing weights, without building, reading or downloading anything."""
    cfg = _pretrained_cfg(timm_name(name))
    if weights == "pretrained" and not (cfg and cfg.has_weights):
        raise UserError(
            f"There are no pretrained weights for {name}.",
            try_this="--backbone resnet50 --weights pretrained, or leave out --weights",
        )
    resolve_weights(weights, name)


def backbone_card(name: str) -> Card | None:
    """What timm's card says of a network's images; None where it has none, as of our own networks."""
    cfg = _pretrained_cfg(timm_name(name))
    if cfg is None or cfg.tag == "scratch":
        return None
    fixed = bool(cfg.fixed_input_size)
    size = int(cfg.input_size[-1])
    return Card(tuple(cfg.mean), tuple(cfg.std), cfg.interpolation, size, cfg.crop_pct, fixed)


def timm_name(name: str) -> str:
    """The name of a backbone in timm, once the package that brings it is imported.

    `package.module:function` is a model that this module registers with timm.
    """
    if not is_reference(name):
        if not timm.is_model(name):
            load_backbones()
        return name
    import_reference(name, "backbone")
    own = name.rpartition(":")[2]
    if not timm.is_model(own):
        raise UserError(
            f"{name} is no backbone.", f"timm knows no model {own!r}.", "timm's decorator register_model"
        )
    return own


def _pretrained_cfg(name: str) -> Any:
    """timm's configuration of a network's pretrained weights and input size; None where it has none."""
    if not timm.is_model(name):
        if name in (failed := load_backbones()):
            raise UserError(f"The plug-in of backbone {name!r} cannot be loaded.", failed[name])
        raise unknown_name("backbone", name, timm.list_models())
    try:
        return timm.models.get_pretrained_cfg(name)
    except RuntimeError:  # the network exists, its tag after the dot does not
        tagged = timm.list_models(f"{name.split('.')[0]}.*", include_tags=True)
        raise unknown_name("backbone", name, tagged) from None


def _create(name: str, image_size: int, pretrained: bool) -> Any:
    cfg = _pretrained_cfg(name)
    takes_size = (cfg and cfg.fixed_input_size) or name.split(".")[0] in ("resnet10", "resnet10_half")
    size: dict[str, Any] = {"img_size": image_size} if takes_size else {}
    try:
        return timm.create_model(name, pretrained=pretrained, num_classes=0, global_pool="", **size)
    except (TypeError, AssertionError):  # a few networks fix their pooling
        return timm.create_model(name, pretrained=pretrained, num_classes=0, **size)
    except (OSError, RuntimeError) as problem:
        if not pretrained:
            raise
        raise UserError(
            f"The pretrained weights of {name} could not be downloaded.", str(problem), "--weights FILE"
        ) from problem
