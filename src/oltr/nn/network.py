"""The whole network: backbone, attention, direct feature and head, in the order of the paper's figure."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from oltr.nn.attention import Attention, AttentionForm, AttentionKind
from oltr.nn.backbone import Backbone
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import Head, Output
from oltr.nn.layout import from_map, to_map


class Network(nn.Module):
    """images → f → f_att → v_direct → head."""

    def __init__(
        self,
        backbone: Backbone,
        direct_feature: DirectFeature,
        head: Head,
        attention: Attention | None = None,
        attention_stage: int = -1,
    ):
        super().__init__()
        self.backbone, self.attention = backbone, attention
        self.direct_feature, self.head = direct_feature, head
        self.attention_last = attention_stage == -1
        if attention is not None and not self.attention_last:
            # An earlier stage is inside the backbone: its output is replaced on the way through. (By a
            # method, not a lambda: copies of the network then attend with their own weights.)
            stage = backbone.net.get_submodule(backbone.stages[attention_stage])
            stage.register_forward_hook(self._attend)
            self.attended_channels = backbone.net.feature_info[attention_stage]["num_chs"]

    def forward(self, images: Tensor) -> Output:
        return self.head(self.embed(images))

    def embed(self, images: Tensor) -> Tensor:
        """v_direct alone, for whoever needs no logits: B×3×S×S → B×D."""
        f = self.backbone(images)
        if self.attention is not None and self.attention_last:
            f = self.attention(f)
        return self.direct_feature(f)

    def _attend(self, stage: nn.Module, inputs: tuple[Tensor, ...], f: Tensor) -> Tensor:
        assert self.attention is not None
        return from_map(self.attention(to_map(f, self.attended_channels, self.backbone.prefix_tokens)), f)

    def roles(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Each parameter with its role: backbone, attention, direct_feature, classifier or memory."""
        for name, parameter in self.named_parameters():
            room = name.split(".")[0]
            if name.endswith("memory.centroids"):
                room = "memory"
            yield ("classifier" if room == "head" else room), parameter

    def idle_parameters(self, image_size: int) -> list[nn.Parameter]:
        """Parameters that no logit depends on, such as a norm in the backbone's own unused head."""
        training = self.training
        self.eval()
        device = next(self.parameters()).device
        logits = self(torch.zeros(1, 3, image_size, image_size, device=device)).all_logits
        self.train(training)
        busy = _leaves(logits)
        # The centroids' gradient may be the loss's alone.
        return [p for role, p in self.roles() if p.requires_grad and role != "memory" and id(p) not in busy]


def _leaves(result: Tensor) -> set[int]:
    """The ids of the parameters that `result` was made from: its graph is walked, no gradient is computed."""
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
    backbone: Backbone, kind: AttentionKind, form: AttentionForm, stage: int, image_size: int
) -> Attention | None:
    """Attention sized for the map after `stage` (−1: the last), or None where there is no map."""
    if kind == "none":
        return None
    channels, map_size = backbone.channels, backbone.map_size
    if stage != -1:
        channels, map_size = backbone.shape_after(stage, image_size)
    if map_size[0] * map_size[1] < 2:
        warnings.warn("The backbone gives no feature map at this image size: attention is off.")
        return None
    return Attention(channels, map_size, kind, form)
