"""A linear classifier whose rows for rare classes are regressed from few-shot rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oltr.nn.heads import Head, Output


class RegressedHead(Head):
    """logit_k = ρ r_k · [v_direct − μ; 1]: common classes keep their trained row, the others have T(r⁰).

    Rows are centred on the mean μ of the class means and scaled by ρ, the mean length of the common classes'
    weights: r = [w; b + w·μ] / ρ. The few-shot row of images with mean feature m has the direction of m and
    the common classes' mean offset: r⁰ = [(m − μ) / ‖m − μ‖; mean of (b + w·μ) / ρ].
    """

    length: Tensor
    rows: Tensor  # K×(D+1)
    middle: Tensor  # D
    class_means: Tensor  # K×D
    counts: Tensor  # K
    common: Tensor  # K
    others: Tensor  # indices of the classes that are not common

    def __init__(self, classifier: nn.Linear, common: Tensor, counts: Tensor, regressor: nn.Module):
        super().__init__()
        self.regressor = regressor
        weight, bias = classifier.weight.detach(), classifier.bias.detach()
        self.register_buffer("length", weight[common].norm(dim=1).mean())
        self.register_buffer("rows", torch.cat([weight, bias[:, None]], dim=1) / self.length)
        self.register_buffer("middle", torch.zeros_like(weight[0]))
        self.register_buffer("class_means", torch.zeros_like(weight))
        self.register_buffer("counts", counts.clone())
        self.register_buffer("common", common)
        self.register_buffer("others", (~common).nonzero()[:, 0])

    @torch.no_grad()
    def start_from(self, class_means: Tensor) -> None:
        """Store the class means (K×D) and centre the rows on their mean."""
        self.class_means.copy_(class_means)
        moved = class_means.mean(dim=0) - self.middle
        self.rows[:, -1] += self.rows[:, :-1] @ moved
        self.middle += moved

    def forward(self, direct: Tensor) -> Output:
        with torch.autocast(direct.device.type, enabled=False):
            direct = direct.to(self.rows.dtype)
            regressed = self.regress(self.class_means[self.others], self.counts[self.others])
            return Output(self.scores(direct, self.rows.index_copy(0, self.others, regressed)), direct)

    def regress(self, means: Tensor, shots: Tensor) -> Tensor:
        """T(r⁰) from mean features of `shots` images each: n×D, n → n×(D+1)."""
        offset = torch.where(self.common, self.rows[:, -1], 0).sum() / self.common.sum()
        directions = F.normalize(means - self.middle, dim=1)
        return self.regressor(torch.cat([directions, offset.expand(len(means), 1)], dim=1), shots)

    def scores(self, direct: Tensor, rows: Tensor) -> Tensor:
        """ρ r · [v_direct − μ; 1]: B×D, n×(D+1) → B×n."""
        return self.length * torch.addmm(rows[:, -1], direct - self.middle, rows[:, :-1].T)
