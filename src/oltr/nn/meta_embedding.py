"""The dynamic meta-embedding: direct feature, memory feature and reachability in one vector."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from oltr.nn.blocked_softmax import blocked_memory_feature
from oltr.nn.blocks import in_one_piece
from oltr.nn.memory import Memory

CoefficientForm = Literal["softmax", "raw"]


class MetaParts(NamedTuple):
    """A meta-embedding and its parts; None where a part is switched off."""

    meta_embedding: Tensor  # B×D
    memory_feature: Tensor | None  # B×D
    concept_selector: Tensor | None  # B×D
    reachability: Tensor | None  # B


class MetaEmbedding(nn.Module):
    """v_meta = (s/γ) (v_direct + e ⊗ v_memory), B×D → B×D, with

    v_memory = oᵀM, o = T_hal(v_direct) (softmax of it in the released form), e = tanh(T_sel(v_direct)),
    γ = reachability of v_direct; s is 10 in the released form, 1 in the paper's. Each part can be switched
    off; the defaults are the released form. Without `constant_centroids` the classifier's gradient reaches
    the centroids.
    """

    def __init__(
        self,
        num_classes: int,
        dims: int,
        *,
        memory: bool = True,
        selector: bool = True,
        reachability: bool = True,
        coefficients: CoefficientForm = "softmax",
        reachability_scale: float = 10.0,
        constant_centroids: bool = True,
    ):
        super().__init__()
        self.coefficients, self.scale, self.constant = coefficients, reachability_scale, constant_centroids
        self.use_reachability = reachability
        self.memory = Memory(num_classes, dims) if memory or reachability else None
        self.hallucinator = nn.Linear(dims, num_classes) if memory else None  # T_hal
        self.concept_selector = nn.Linear(dims, dims) if memory and selector else None  # T_sel

    def forward(self, direct: Tensor) -> MetaParts:
        v, memory_feature, e, gamma = direct, None, None, None
        if self.hallucinator is not None and self.memory is not None:
            centroids = self.memory.centroids.detach() if self.constant else self.memory.centroids
            memory_feature = hallucinate(direct, self.hallucinator, centroids, self.coefficients)
            if self.concept_selector is not None:
                e = self.concept_selector(direct).tanh()
            v = direct + (memory_feature if e is None else e * memory_feature)
        if self.use_reachability and self.memory is not None:
            gamma = self.memory.reachability(direct, self.constant)
            v = v * (self.scale / gamma)[:, None]
        return MetaParts(v, memory_feature, e, gamma)


def hallucinate(direct: Tensor, hallucinator: nn.Linear, centroids: Tensor, form: CoefficientForm) -> Tensor:
    """v_memory = oᵀM, o = T_hal(v_direct) or its softmax: B×D, K×D → B×D; in blocks where B×K is large."""
    (batch, dims), weight, bias = direct.shape, hallucinator.weight, hallucinator.bias
    whole = in_one_piece(batch, len(weight))
    if form == "softmax":
        if whole:
            return hallucinator(direct).softmax(dim=1) @ centroids
        return blocked_memory_feature(direct, weight, bias, centroids)
    if whole and batch <= dims:
        return hallucinator(direct) @ centroids
    return torch.addmm(bias @ centroids, direct, weight.T @ centroids)  # (v Wᵀ + b) M = v (Wᵀ M) + b M
