"""Views of one image that predict each other, as in SimSiam (Chen and He, CVPR 2021)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F


def consistency_loss(predicted: Sequence[Tensor], projected: Sequence[Tensor]) -> Tensor:
    """−mean over pairs of views v ≠ w of cos(predicted_v, projected_w), the latter constant: B×d each → 1."""
    pairs = [(v, w) for v in range(len(predicted)) for w in range(len(projected)) if v != w]
    cosines = [F.cosine_similarity(predicted[v], projected[w].detach()).mean() for v, w in pairs]
    return -torch.stack(cosines).mean()
