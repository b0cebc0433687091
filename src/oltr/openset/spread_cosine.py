"""The whitened cosine to the nearest class mean, beside the spread of the activations."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from torch import Tensor

from oltr.openset.parts import by_parts
from oltr.openset.scores import register
from oltr.openset.spread import spread
from oltr.openset.whitened_cosine import Directions, WhitenedCosine

WEIGHT = 0.4  # chosen on development data, where 0.3 to 0.5 are about as good


@register
class SpreadCosine(WhitenedCosine):
    """max_k cos(W(v − m), W(μ_k − m)) + 0.4 · Σ a / Σ the largest 30 % of a, a = max(v_direct, 0).

    Images that resemble a class have fewer activations than others: the spread goes down where the cosine
    goes up, and is of no use alone. Of two images that resemble their classes equally, the one of a known
    class has its activations spread more.
    """

    name = "spread-cosine"
    info = replace(
        WhitenedCosine.info,
        title="Whitened cosine and spread of activations",
        summary="The whitened cosine to the nearest class mean plus 0.4 times the spread of the activations, "
        "their sum over that of the largest 30 %",
        changes=f"{WhitenedCosine.info.changes}; the spread is that of SCALE (Xu et al., ICLR 2024)",
    )
    limits = (-1.0, inf)

    def compare(self, features: Tensor, logits: Tensor, learned: Directions) -> Tensor:
        spreads = by_parts(lambda x: spread(x, 70).squeeze(1), features)
        return super().compare(features, logits, learned) + WEIGHT * spreads
