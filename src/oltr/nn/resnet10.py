"""The paper's ResNet-10, and one of half its width for CPUs, as timm models."""

from __future__ import annotations

from typing import Any

from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.resnet import BasicBlock, ResNet
from torch import nn

SMALL_IMAGE = 96

default_cfgs = generate_default_cfgs(
    {
        name: {
            "input_size": (3, 224, 224),
            "pool_size": (7, 7),
            "mean": (0.485, 0.456, 0.406),
            "std": (0.229, 0.224, 0.225),
            "first_conv": "conv1",
            "classifier": "fc",
        }
        for name in ("resnet10.scratch", "resnet10_half.scratch")
    }
)


class ResNet10(ResNet):
    """ResNet of one basic block per stage; below 96 px a 3×3 stem without pooling keeps a map ≥ 2×2."""

    def __init__(self, img_size: int = 224, width: int = 64, **kwargs: Any):
        channels = (width, 2 * width, 4 * width, 8 * width)
        block: Any = BasicBlock
        super().__init__(block, (1, 1, 1, 1), channels=channels, zero_init_last=False, **kwargs)
        small = img_size < SMALL_IMAGE
        if small or width != 64:
            # timm's stem is 7×7 and 64 wide whatever the width of the stages.
            kernel = 3 if small else 7
            stride = 2 if img_size >= 32 else 1
            self.conv1 = nn.Conv2d(3, width, kernel, stride, kernel // 2, bias=False)  # type: ignore[assignment]
            self.bn1 = nn.BatchNorm2d(width)
            self.layer1 = nn.Sequential(BasicBlock(width, width))
            self.feature_info[0]["num_chs"] = width
            self.init_weights(zero_init_last=False)
        if small:
            self.maxpool = nn.Identity()  # type: ignore[assignment]


@register_model
def resnet10(pretrained: bool = False, **kwargs: Any) -> ResNet10:
    """ResNet-10, 64 to 512 channels: the ImageNet-LT backbone."""
    return build_model_with_cfg(ResNet10, "resnet10", pretrained, **kwargs)


@register_model
def resnet10_half(pretrained: bool = False, **kwargs: Any) -> ResNet10:
    """ResNet-10 with 32 to 256 channels: a quarter of the work, for CPUs and the demo."""
    return build_model_with_cfg(ResNet10, "resnet10_half", pretrained, width=32, **kwargs)
