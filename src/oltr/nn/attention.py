"""Modulated attention: spatial attention applied to self-attention, f_att = f + MA(f) ⊗ SA(f)."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor, nn

AttentionKind = Literal["none", "spatial", "self", "modulated"]
AttentionForm = Literal["pointwise", "released"]
AttentionStart = Literal["zero", "released"]


class SelfAttention(nn.Module):
    """SA(f) = out(softmax(θ(f)ᵀ φ(f)) g(f)): each position attends to all, B×C×H×W → B×C×H×W.

    Unscaled, on C/2 channels, as in the released code. With the start `zero` the last layer is zero, so that
    adding SA(f) to f starts as the identity; with `released` every weight is drawn from N(0, 2 / outputs) and
    every bias is zero, the last layer having none. The layers are 1×1 convolutions, computed as matrix
    products over the positions, which is faster on so small a map.
    """

    def __init__(self, channels: int, start: AttentionStart = "zero"):
        super().__init__()
        inner = max(channels // 2, 1)
        self.theta = nn.Linear(channels, inner)
        self.phi = nn.Linear(channels, inner)
        self.g = nn.Linear(channels, inner)
        self.out = nn.Linear(inner, channels, bias=start == "zero")
        if start == "zero":
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.out.bias)
            return
        for layer in (self.theta, self.phi, self.g, self.out):
            nn.init.normal_(layer.weight, std=math.sqrt(2 / layer.out_features))
        for layer in (self.theta, self.phi, self.g):
            nn.init.zeros_(layer.bias)

    def forward(self, f: Tensor) -> Tensor:
        positions = by_position(f)
        theta, phi, g = self.theta(positions), self.phi(positions), self.g(positions)  # B×HW×C/2
        affinity = (theta @ phi.transpose(1, 2)).float().softmax(dim=2).to(g.dtype)  # B×HW×HW
        return self.out(affinity @ g).transpose(1, 2).unflatten(2, f.shape[2:])


class SpatialAttention(nn.Module):
    """MA(f): a softmax over the H·W positions, conditioned on f, B×C×H×W → B×1×H×W.

    `pointwise` scores each position from its own channels (a 1×1 convolution), at every map size; `released`
    scores all positions from the whole map (a linear layer HW·C → HW), at the size it was built for.
    """

    def __init__(self, channels: int, map_size: tuple[int, int], form: AttentionForm):
        super().__init__()
        positions = map_size[0] * map_size[1]
        self.whole_map = form == "released"
        self.score = nn.Linear(positions * channels, positions) if self.whole_map else nn.Linear(channels, 1)

    def forward(self, f: Tensor) -> Tensor:
        scores = self.score(f.flatten(1)) if self.whole_map else self.score(by_position(f)).squeeze(2)
        weights = scores.float().softmax(dim=1).to(f.dtype)
        return weights.unflatten(1, f.shape[2:]).unsqueeze(1)


def by_position(f: Tensor) -> Tensor:
    """One row of channels per position; no copy for a channels-last map: B×C×H×W → B×HW×C."""
    return f.flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """f_att = f + A(f); A = MA ⊗ SA (modulated), SA (self) or MA ⊗ f (spatial, the paper's ablation)."""

    def __init__(
        self,
        channels: int,
        map_size: tuple[int, int],
        kind: AttentionKind = "modulated",
        form: AttentionForm = "pointwise",
        start: AttentionStart = "zero",
    ):
        super().__init__()
        has_self, has_spatial = kind in ("self", "modulated"), kind in ("spatial", "modulated")
        self.self_attention = SelfAttention(channels, start) if has_self else None
        self.spatial = SpatialAttention(channels, map_size, form) if has_spatial else None

    def forward(self, f: Tensor) -> Tensor:
        context = f if self.self_attention is None else self.self_attention(f)
        return f + (context if self.spatial is None else self.spatial(f) * context)
