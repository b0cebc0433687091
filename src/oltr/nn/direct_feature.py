"""The direct feature: the image's own, without the memory."""

from __future__ import annotations

from torch import Tensor, nn


class DirectFeature(nn.Module):
    """v_direct = mean over positions of f_att, then optionally ReLU(Linear(C → D)): B×C×H×W → B×D."""

    def __init__(self, channels: int, fc: int | None = None):
        super().__init__()
        self.dims = fc or channels
        self.fc = nn.Sequential(nn.Linear(channels, fc), nn.ReLU()) if fc else None

    def forward(self, feature_map: Tensor) -> Tensor:
        pooled = feature_map.mean(dim=(2, 3))
        return pooled if self.fc is None else self.fc(pooled)
