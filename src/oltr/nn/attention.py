"""Modulated attention: spatial attention applied to self-attention, f_att = f + MA(f) ⊗ SA(f)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

AttentionKind = Literal["none", "spatial", "self", "modulated"]
AttentionForm = Literal["any", "released"]


class SelfAttention(nn.Module):
    """SA(f) = conv(softmax(θ(f)ᵀ φ(f)) g(f)): each position gathers from all, B×C×H×W → B×C×H×W.

    Unscaled, on C/2 channels, as in the released code; the last convolution starts at zero, so that
    adding SA(f) to f starts as the identity.
    """

    def __init__(self, channels: int):
        super().__init__()
        inner = max(channels // 2, 1)
        self.theta = nn.Conv2d(channels, inner, 1)
        self.phi = nn.Conv2d(channels, inner, 1)
        self.g = nn.Conv2d(channels, inner, 1)
        self.out = nn.Conv2d(inner, channels, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)  # type: ignore[arg-type]

    def forward(self, f: Tensor) -> Tensor:
        theta, phi, g = (layer(f).flatten(2) for layer in (self.theta, self.phi, self.g))  # B×C/2×HW
        affinity = (theta.transpose(1, 2) @ phi).float().softmax(dim=2).to(g.dtype)  # B×HW×HW
        gathered = affinity @ g.transpose(1, 2)
        return self.out(gathered.transpose(1, 2).unflatten(2, f.shape[2:]))


class SpatialAttention(nn.Module):
    """MA(f): a softmax over the H·W positions, conditioned on f, B×C×H×W → B×1×H×W.

    `any` scores each position from its own channels (1×1 convolution), at every map size; `released` scores
    all positions from the whole map (a linear layer HW·C → HW), at the size it was built for.
    """

    def __init__(self, channels: int, map_size: tuple[int, int], form: AttentionForm):
        super().__init__()
        positions = map_size[0] * map_size[1]
        self.score: nn.Module
        if form == "released":
            self.score = nn.Sequential(nn.Flatten(), nn.Linear(positions * channels, positions))
        else:
            self.score = nn.Sequential(nn.Conv2d(channels, 1, 1), nn.Flatten())

    def forward(self, f: Tensor) -> Tensor:
        weights = self.score(f).float().softmax(dim=1).to(f.dtype)
        return weights.unflatten(1, f.shape[2:]).unsqueeze(1)


class Attention(nn.Module):
    """f_att = f + A(f); A = MA ⊗ SA (modulated), SA (self) or MA ⊗ f (spatial, the paper's ablation)."""

    def __init__(
        self, channels: int, map_size: tuple[int, int], kind: AttentionKind, form: AttentionForm = "any"
    ):
        super().__init__()
        has_self, has_spatial = kind in ("self", "modulated"), kind in ("spatial", "modulated")
        self.self_attention = SelfAttention(channels) if has_self else None
        self.spatial = SpatialAttention(channels, map_size, form) if has_spatial else None

    def forward(self, f: Tensor) -> Tensor:
        context = f if self.self_attention is None else self.self_attention(f)
        return f + (context if self.spatial is None else self.spatial(f) * context)
