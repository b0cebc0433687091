"""A memory of class means added to the logits of a trained head."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oltr.nn.heads import Head, Output
from oltr.nn.memory_head import ClassMeans


class AddedMemory(ClassMeans):
    """w_k · cos(A(v − m), A(μ_k − m)), v = v_direct, a weight for each class: B×D → B×K; in float32."""

    def __init__(self, num_classes: int, dims: int):
        super().__init__(num_classes, dims, scale=1.0)
        self.weights: Tensor
        self.of_logits: Tensor
        self.register_buffer("weights", torch.zeros(num_classes))
        self.register_buffer("of_logits", torch.ones(()))  # a, the weight of the trained head's logits

    def forward(self, direct: Tensor) -> Tensor:
        return super().forward(direct) * self.weights


def add_memory(head: Head, memory: AddedMemory) -> None:
    """From now on a·logits + memory(v_direct), whatever kind the head is; the memory becomes a part of it."""
    head.added_memory = memory
    # A hook and no head around it: whoever looks for a kind of head, or for a weight by its name, finds it.
    head.register_forward_hook(_remembered)


def _remembered(head: Any, inputs: tuple[Any, ...], output: Output) -> Output:
    memory = head.added_memory
    logits = memory.of_logits * output.logits + memory(output.direct_feature)
    return output._replace(logits_or_none=logits)
