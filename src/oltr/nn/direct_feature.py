"""The direct feature: the image's own, without the memory."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class DirectFeature(nn.Module):
    """v_direct = mean over positions of f_att, then optionally ReLU(Linear(C → D)): B×C×H×W → B×D."""

    def __init__(self, channels: int, fc: int | None = None):
        super().__init__()
        self.dims = fc or channels
        self.fc = nn.Sequential(nn.Linear(channels, fc), nn.ReLU()) if fc else None

    def forward(self, feature_map: Tensor) -> Tensor:
        pooled = feature_map.mean(dim=(2, 3))
        return pooled if self.fc is None else self.fc(pooled)

    def by_position(self, feature_map: Tensor) -> Tensor:
        """What each position gives, W f_att + b behind the layer: B×C×H×W → B×D×H×W.

        Layer and mean are linear, so that the mean over positions is v_direct before the ReLU.
        """
        if self.fc is None:
            return feature_map
        linear = self.fc[0]
        return F.conv2d(feature_map, linear.weight[:, :, None, None], linear.bias)
