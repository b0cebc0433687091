"""Any timm network as a function from images to one feature map."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import timm
import torch
from torch import Tensor, nn

from oltr.errors import UserError
from oltr.nn import resnet10, resnet32_cifar  # noqa: F401  (registers them with timm)
from oltr.nn.layout import to_map
from oltr.plugins import import_reference, is_reference, load_backbones
from oltr.registry import unknown_name

NO_WEIGHTS = "It is damaged, of another format, or holds more than tensors, numbers and text."


class Backbone(nn.Module):
    """f = backbone(images): B×3×S×S → B×C×H×W, whatever layout the network uses.

    Token networks (ViT) give their patch grid, channels-last ones (Swin) are permuted; a network without a
    map gives its vector as a 1×1 map and has `has_map = False`.
    """

    def __init__(self, name: str, image_size: int, weights: str | None = None):
        super().__init__()
        check_backbone(name, weights)
        name = timm_name(name)
        self.net = _create(name, image_size, pretrained=weights == "pretrained")
        self.pretrained = weights is not None
        if weights not in (None, "pretrained"):
            load_weights(self.net, Path(str(weights)))
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
    card = _card(timm_name(name))
    if weights == "pretrained" and not (card and card.has_weights):
        raise UserError(
            f"There are no pretrained weights for {name}.",
            try_this="--backbone resnet50 --weights pretrained, or leave out --weights",
        )
    if weights not in (None, "pretrained") and not Path(str(weights)).is_file():
        raise UserError(
            f"There is no weight file {weights}.", try_this="a .safetensors or .pth file, or `pretrained`"
        )


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


def _card(name: str) -> Any:
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
    card = _card(name)
    takes_size = (card and card.fixed_input_size) or name.split(".")[0] in ("resnet10", "resnet10_half")
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


def load_weights(net: nn.Module, path: Path) -> None:
    """Fill `net` from a weight file, ignoring the file's classifier and the prefixes that trainers add."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:  # many kinds, which all mean the same to the user
        # PyTorch's message advises weights_only=False, which may run code from the file.
        reason = f"{problem.strerror}." if isinstance(problem, OSError) and problem.strerror else NO_WEIGHTS
        raise UserError(f"{path} could not be read as weights.", reason) from problem
    for wrapper in ("state_dict", "model"):
        inner = state.get(wrapper) if isinstance(state, Mapping) else None
        state = inner if isinstance(inner, Mapping) else state
    if not isinstance(state, Mapping):
        raise UserError(f"{path} holds no named weights.", try_this="a file with a network's state dict")
    own = net.state_dict()
    renamed = {_strip(name): value for name, value in state.items() if isinstance(value, Tensor)}
    fitting = {n: v for n, v in renamed.items() if n in own and v.shape == own[n].shape}
    if len(fitting) < len(own) / 2:
        raise UserError(
            f"{path} does not fit this backbone: {len(fitting)} of {len(own)} tensors match.",
            try_this="the backbone these weights were trained with",
        )
    if missing := len(own) - len(fitting):
        warnings.warn(f"{missing} of {len(own)} backbone tensors are not in {path.name} and start at random.")
    net.load_state_dict(fitting, strict=False)


def _strip(name: str) -> str:
    for prefix in ("module.", "backbone.net.", "backbone."):
        name = name.removeprefix(prefix)
    return name
