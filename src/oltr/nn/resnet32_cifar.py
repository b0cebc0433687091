"""The ResNet-32 for 32-pixel images that long-tail papers compare on, as a timm model."""

from __future__ import annotations

from typing import Any

import torch
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor, nn
from torch.nn import functional as F

default_cfgs = generate_default_cfgs(
    {
        "resnet32_cifar.scratch": {
            "input_size": (3, 32, 32),
            "pool_size": (8, 8),
            "mean": (0.4914, 0.4822, 0.4465),
            "std": (0.2023, 0.1994, 0.2010),
            "first_conv": "conv1",
            "classifier": "fc",
        }
    }
)


class CifarBlock(nn.Module):
    """relu(shortcut(x) + bn(conv(relu(bn(conv(x)))))), the shortcut without weights (option A)."""

    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.new_channels = stride, channels - channels_in

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride != 1 or self.new_channels:
            x = x[:, :, :: self.stride, :: self.stride]
            x = F.pad(x, (0, 0, 0, 0, self.new_channels // 2, self.new_channels // 2))
        return F.relu(out + x)


class CifarResNet(nn.Module):
    """Three stages of `blocks` blocks at 16, 32 and 64 channels: 6·blocks + 2 layers."""

    def __init__(self, blocks: int, num_classes: int = 100, in_chans: int = 3, global_pool: str = "avg"):
        super().__init__()
        self.num_classes, self.num_features, self.global_pool = num_classes, 64, global_pool
        self.conv1 = nn.Conv2d(in_chans, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, blocks, 1)
        self.layer2 = self._stage(16, 32, blocks, 2)
        self.layer3 = self._stage(32, 64, blocks, 2)
        self.fc = nn.Linear(64, num_classes) if num_classes else nn.Identity()
        self.feature_info = [
            {"num_chs": 16 * 2**i, "reduction": 2**i, "module": f"layer{i + 1}"} for i in range(3)
        ]
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    @staticmethod
    def _stage(channels_in: int, channels: int, blocks: int, stride: int) -> nn.Sequential:
        first = CifarBlock(channels_in, channels, stride)
        return nn.Sequential(first, *(CifarBlock(channels, channels, 1) for _ in range(blocks - 1)))

    def forward_features(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        return self.layer3(self.layer2(self.layer1(x)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.forward_features(x)
        return self.fc(torch.mean(x, dim=(2, 3))) if self.global_pool else x


@register_model
def resnet32_cifar(pretrained: bool = False, **kwargs: Any) -> CifarResNet:
    """CIFAR ResNet-32: 0.46M weights, 64 features."""
    return build_model_with_cfg(CifarResNet, "resnet32_cifar", pretrained, blocks=5, **kwargs)
