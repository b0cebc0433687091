"""A trained head that knows further classes, and no longer knows others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.heads import Head, Output
from oltr.nn.memory import Memory
from oltr.nn.memory_head import ClassMeans

SCALE = 16.0  # length of the features that added rows see: one decay then suits every network


def centred_unit(direct: Tensor, centre: Tensor) -> Tensor:
    """u(v) = s (v − μ) / ‖v − μ‖: B×D → B×D."""
    return SCALE * F.normalize(direct.float() - centre, dim=1)


class AddedRows(nn.Module):
    """The classes known now: k of the trained ones, and M added, each with a row; with a memory, a centroid
    of each; with class means, those of the added ones."""

    def __init__(
        self,
        kept: Tensor,
        weight: Tensor,
        bias: Tensor,
        centre: Tensor,
        memory: Memory | None = None,
        class_means: ClassMeans | None = None,
    ):
        super().__init__()
        self.kept: Tensor
        self.weight: Tensor
        self.bias: Tensor
        self.centre: Tensor
        self.register_buffer("kept", kept)  # k int64, numbers of trained classes
        self.register_buffer("weight", weight)  # M×D
        self.register_buffer("bias", bias)  # M
        self.register_buffer("centre", centre)  # μ, D
        self.memory = memory  # of k + M classes; None: the trained head's still holds, or there is none
        self.class_means = class_means  # of the M added classes

    def forward(
        self, direct: Tensor, logits: Tensor, reachability: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Logits B×(k + M) and reachability B, from those of the trained head."""
        kept = logits.index_select(1, self.kept)
        if reachability is not None and self.memory is not None:
            reachability = self.memory.reachability(direct.float(), constant=True).to(reachability.dtype)
        if not len(self.bias):
            return kept, reachability
        added = self.added(direct)
        if self.class_means is not None:
            added = added + self.class_means(direct)
        return torch.cat([kept, added.to(kept.dtype)], dim=1), reachability

    def added(self, direct: Tensor) -> Tensor:
        """W u(v) + b of the added classes: B×D → B×M."""
        return F.linear(centred_unit(direct, self.centre), self.weight, self.bias)


class ExtendedHead(Head):
    """logits = [z_k of the trained classes that are kept | W u(v_direct) + b]: B×D → Output with B×(k + M).

    The trained head works as before, whatever kind it is. Where it has a memory, γ is the distance to the
    nearest centroid of the classes known now; class means add their cosine to the new logits, too.
    """

    def __init__(self, head: Head, rows: AddedRows):
        super().__init__()
        self.head, self.rows = head, rows

    def forward(self, direct: Tensor) -> Output:
        return self.extend(self.head(direct))

    def without_class_means(self, direct: Tensor) -> Tensor:
        kept = self.head.without_class_means(direct).index_select(1, self.rows.kept)
        return torch.cat([kept, self.rows.added(direct).to(kept.dtype)], dim=1)

    def extend(self, output: Output) -> Output:
        """The trained head's output as that of the classes known now."""
        with torch.autocast(output.direct_feature.device.type, enabled=False):
            logits, reachability = self.rows(output.direct_feature, output.logits, output.reachability)
        return output._replace(logits_or_none=logits, reachability=reachability)
