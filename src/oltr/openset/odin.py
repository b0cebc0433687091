"""ODIN: images moved a little towards their likeliest class, then a softmax at a high temperature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from oltr.openset.parts import by_parts
from oltr.openset.scores import Score, ScoreInfo, register


def perturbed(
    logits_of: Callable[[Tensor], Tensor], images: Tensor, temperature: float, noise: Tensor | float
) -> Tensor:
    """x' = x − noise · sign(−∇_x log softmax(logits(x) / T)_ŷ), ŷ the likeliest class: B×3×S×S → B×3×S×S.

    `logits_of` is the network in evaluation mode; `noise` is in the units of x, a number or one for each
    channel (1×3×1×1).
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = images.clone().requires_grad_()  # a clone, as a tensor made for inference takes no gradient
        logits = logits_of(x).float()
        loss = F.cross_entropy(logits / temperature, logits.argmax(dim=1), reduction="sum")
        (gradient,) = torch.autograd.grad(loss, x)
    return images - noise * gradient.sign()


@register
@dataclass(frozen=True)
class Odin(Score):
    """max_k softmax(logits(x') / T)_k, to be read from outputs of the perturbed images x' (see `perturbed`).

    `noise` is ε on pixels that go from 0 to 1: after the division by a channel's standard deviation it is
    ε / std. With ε = 0 the outputs are those of the images themselves.
    """

    temperature: float = 1000.0
    noise: float = 0.0014

    name = "odin"
    info = ScoreInfo(
        title="ODIN",
        summary="The maximum softmax probability at a high temperature, after a small input perturbation",
        paper="Liang et al., Enhancing The Reliability of Out-of-distribution Image Detection in Neural "
        "Networks, ICLR 2018",
        year=2018,
        changes="T = 1000 and ε = 0.0014 for every network and data set, unless they are tuned",
    )
    higher_is_known = True
    limits = (0, 1)

    @property
    def view(self) -> str:
        return f"odin-T{self.temperature:g}-e{self.noise:g}" if self.noise else ""

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        return by_parts(lambda x: (x / self.temperature).softmax(dim=1).amax(dim=1), logits)

    def change(self, logits_of: Callable[[Tensor], Tensor], images: Tensor, std: Sequence[float]) -> Tensor:
        """The perturbed images, of images normalised by `std`: B×3×S×S → B×3×S×S."""
        step = self.noise / torch.tensor(std, device=images.device).view(1, -1, 1, 1)
        return perturbed(logits_of, images, self.temperature, step)
