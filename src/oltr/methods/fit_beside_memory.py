"""A linear classifier fitted beside the cosines with a memory of class means."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from oltr.methods.other_folds import OtherFolds, every_class
from oltr.nn.fit_linear import fit_linear
from oltr.openset.whitened_cosine import Directions


class BesideMemory(NamedTuple):
    """The weights of a `MemoryHead`, and the loss of the fit."""

    weight: Tensor  # K×D
    bias: Tensor  # K
    memory: Directions  # with a row for every class, zero where it has no image
    loss: float


def fit_beside_memory(
    features: Tensor, labels: Tensor, prior: Tensor, *, scale: float, decay: float, iterations: int
) -> BesideMemory:
    """W, b at the minimum of mean −log softmax(W v + b + s·c(v) + prior)[y] + decay/2 ‖W‖², and the memory.

    features N×D, labels N, prior K. c(v) are out-of-fold cosines: that of an image with a mean that contains
    it is far larger than that of a new image of its class, and would leave nothing for W to learn.
    """
    others = OtherFolds(features, labels, len(prior))

    def beside(rows: slice) -> Tensor:
        return prior + scale * others(rows)

    weight, bias, loss = fit_linear(features, labels, beside, decay=decay, iterations=iterations)
    return BesideMemory(weight, bias, every_class(features.cpu(), labels.cpu(), len(prior)), loss)
