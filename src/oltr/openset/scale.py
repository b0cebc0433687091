"""SCALE: logits made larger where activations are spread over many dimensions, then their energy."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from oltr.openset.parts import AT_A_TIME, parts
from oltr.openset.scores import Score, ScoreInfo, register
from oltr.openset.spread import spread


@register
class Scale(Score):
    """log Σ_k exp(s · logits_k), s = exp(Σ a / Σ the largest 15 % of a), a = max(v_direct, 0)."""

    name = "scale"
    info = ScoreInfo(
        title="SCALE",
        summary="The energy of logits that are scaled by the spread of the feature's activations",
        paper="Xu et al., Scaling for Training Time and Post-hoc Out-of-distribution Detection Enhancement, "
        "ICLR 2024",
        year=2024,
        changes="the logits are scaled instead of the feature, which is the same for a head without bias; "
        "negative activations count as zero; the 85th percentile for every network",
    )
    higher_is_known = True
    percentile: ClassVar[int] = 85

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        pairs = zip(parts(features, AT_A_TIME), parts(logits, AT_A_TIME), strict=True)
        scaled = (z.double() * spread(x.double(), self.percentile).exp() for x, z in pairs)
        return torch.cat([part.logsumexp(dim=1) for part in scaled])


@register
class Scale70(Scale):
    """The same by the largest 30 % of a: an image's scale depends less on a few activations."""

    name = "scale-70"
    info = replace(
        Scale.info,
        title="SCALE, 70th percentile",
        summary="SCALE with the largest 30 % of the activations instead of 15 %",
        changes=Scale.info.changes.replace("85th", "70th"),
    )
    percentile = 70
