"""The distance to the nearest centroid of the memory."""

from __future__ import annotations

from torch import Tensor

from oltr.errors import UserError
from oltr.openset.scores import Score, ScoreInfo, register


@register
class Reachability(Score):
    """γ = min_i ‖v_direct − c_i‖₂; small is familiar."""

    name = "reachability"
    info = ScoreInfo(
        title="Reachability",
        summary="The distance to the nearest centroid of the memory; for methods that have one",
        paper="Liu et al., Large-Scale Long-Tailed Recognition in an Open World, CVPR 2019",
        year=2019,
        changes="in the paper γ only scales the embedding; here it can also decide by itself",
    )
    higher_is_known = False

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        if reachability is None:
            raise UserError(
                "The score 'reachability' needs a network with a memory.",
                "The method that made these outputs has none, so there is no distance to a centroid.",
                "the score softmax, or a method with a memory such as oltr",
            )
        return reachability.double()
