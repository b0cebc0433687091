"""The DenseNet-BC (depth 100, growth 12) for 32-pixel images that ODIN's tables are of, as a timm model."""

from __future__ import annotations

from typing import Any

from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models.densenet import DenseNet
from torch import nn

default_cfgs = generate_default_cfgs(
    {
        "densenet100_cifar.scratch": {
            "input_size": (3, 32, 32),
            "pool_size": (8, 8),
            "mean": (0.4914, 0.4824, 0.4467),
            "std": (0.2471, 0.2435, 0.2616),
            "first_conv": "features.conv0",
            "classifier": "classifier",
        }
    }
)


class CifarDenseNet(DenseNet):
    """timm's, with a bare 3×3 convolution of 2·growth channels before the first block: nothing is halved.

    A layer is norm, relu, 1×1 to 4·growth, norm, relu, 3×3 to growth, beside all that came before it; between
    the blocks half of the channels and of the pixels go.
    """

    def __init__(self, layers: int, growth_rate: int, in_chans: int = 3, **kwargs: Any):
        super().__init__(growth_rate=growth_rate, block_config=(layers,) * 3, in_chans=in_chans, **kwargs)
        self.features.conv0 = nn.Conv2d(in_chans, 2 * growth_rate, 3, padding=1, bias=False)
        del self.features.norm0, self.features.pool0
        ends = [f"features.{name}" for name in ("denseblock1", "denseblock2", "norm5")]
        channels = [entry["num_chs"] for entry in self.feature_info[1:]]
        self.feature_info = [
            {"num_chs": width, "reduction": 2**number, "module": end}
            for number, (width, end) in enumerate(zip(channels, ends, strict=True))
        ]
        for module in self.modules():
            if isinstance(module, nn.Conv2d):  # as its authors start it; timm takes fan_in
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


@register_model
def densenet100_cifar(pretrained: bool = False, **kwargs: Any) -> CifarDenseNet:
    """CIFAR DenseNet-BC-100-12: 0.77M weights without its classifier, 342 features."""
    return build_model_with_cfg(
        CifarDenseNet, "densenet100_cifar", pretrained, layers=16, growth_rate=12, **kwargs
    )
