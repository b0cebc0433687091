"""How unfamiliar an image looks, read from cached outputs: a number per image and a side of a threshold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.evaluation.outputs import Outputs
from oltr.registry import Registry


class Score(ABC):
    """A number per image, with the side of a threshold on which the image is called unknown."""

    name: ClassVar[str]
    higher_is_known: ClassVar[bool]
    default_threshold: ClassVar[float | None] = None  # None: there is no number that suits every data set

    @abstractmethod
    def value(self, outputs: Outputs) -> Tensor:
        """The score in its own units, N float64."""

    def unknown_score(self, outputs: Outputs) -> Tensor:
        """The score turned so that higher is more unknown, N float64."""
        value = self.value(outputs)
        return -value if self.higher_is_known else value

    def is_unknown(self, values: Tensor, threshold: float) -> Tensor:
        """N bool: strictly beyond the threshold; an image exactly on it is known."""
        return values < threshold if self.higher_is_known else values > threshold


class Softmax(Score):
    """Largest softmax probability; the paper calls an image unknown when it is below 0.1."""

    name = "softmax"
    higher_is_known = True
    default_threshold = 0.1

    def value(self, outputs: Outputs) -> Tensor:
        # In float32 a sure network gives exactly 1 to many images, and their order is lost. In parts,
        # because a float64 copy of all N×K logits may not fit.
        return torch.cat([part.double().softmax(dim=1).amax(dim=1) for part in outputs.logits.split(4096)])

    def unknown_score(self, outputs: Outputs) -> Tensor:
        return 1 - self.value(outputs)


class Reachability(Score):
    """γ = min_i ‖v_direct − c_i‖₂, the distance to the nearest centroid of the memory; small is familiar."""

    name = "reachability"
    higher_is_known = False

    def value(self, outputs: Outputs) -> Tensor:
        if outputs.reachability is None:
            raise UserError(
                "The score 'reachability' needs a network with a memory.",
                "The method that made these outputs has none, so there is no distance to a centroid.",
                "the score softmax, or a method with a memory such as oltr",
            )
        return outputs.reachability.double()


SCORES: Registry[Score] = Registry("score")
for _score in (Softmax(), Reachability()):
    SCORES.register(_score.name)(_score)
