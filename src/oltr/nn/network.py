"""The whole network: backbone, attention, direct feature and head, in the order of the paper's figure."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from oltr.nn.attention import Attention, AttentionForm, AttentionKind, AttentionStart
from oltr.nn.backbone import Backbone
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import Head, Output


class Network(nn.Module):
    """images → f → f_att → v_direct → head.

    No output depends on the `auxiliary` parts, which learn with it: they are what `Method.across_views`
    compares views in, and a finished model is without them.
    """

    def __init__(
        self,
        backbone: Backbone,
        direct_feature: DirectFeature,
        head: Head,
        attention: Attention | None = None,
        auxiliary: nn.ModuleDict | None = None,
    ):
        super().__init__()
        self.backbone, self.attention = backbone, attention
        self.direct_feature, self.head, self.auxiliary = direct_feature, head, auxiliary

    def forward(self, images: Tensor) -> Output:
        return self.head(self.embed(images))

    def embed(self, images: Tensor) -> Tensor:
        """v_direct alone, without the head's work: B×3×S×S → B×D."""
        f = self.backbone(images)
        return self.direct_feature(f if self.attention is None else self.attention(f))

    def roles(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Each parameter with its role: the part that it is of, its head being "classifier" and "memory"."""
        for name, parameter in self.named_parameters():
            part = name.split(".")[0]
            if name.endswith("memory.centroids"):
                part = "memory"
            yield ("classifier" if part == "head" else part), parameter

    def idle_parameters(self, image_size: int) -> list[nn.Parameter]:
        """Parameters that no logit depends on, such as a norm in the backbone's own unused head."""
        training = self.training
        self.eval()
        device = next(self.parameters()).device
        logits = self(torch.zeros(1, 3, image_size, image_size, device=device)).logits
        self.train(training)
        used = _leaves(logits)
        by_loss = ("memory", "auxiliary")  # their gradient may come from the loss alone
        return [
            p for role, p in self.roles() if p.requires_grad and role not in by_loss and id(p) not in used
        ]


def _leaves(result: Tensor) -> set[int]:
    """Ids of the parameters that `result` depends on, from its autograd graph; no gradient is computed."""
    leaves, seen, waiting = set(), set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (variable := getattr(node, "variable", None)) is not None:
            leaves.add(id(variable))
        waiting += [before for before, _ in node.next_functions]
    return leaves


def build_attention(
    backbone: Backbone,
    kind: AttentionKind = "modulated",
    form: AttentionForm = "pointwise",
    start: AttentionStart = "zero",
) -> Attention | None:
    """Attention sized for the backbone's map, or None where there is no map."""
    if kind == "none":
        return None
    if not backbone.has_map:
        warnings.warn(
            "The backbone gives no feature map (frozen features, or a small image): attention is off."
        )
        return None
    return Attention(backbone.channels, backbone.map_size, kind, form, start)
