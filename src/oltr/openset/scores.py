"""The contract of a score: how unfamiliar an image looks, as a number and a side of a threshold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Generic, Literal, TypeVar
from weakref import WeakKeyDictionary

from torch import Tensor

from oltr.errors import UserError
from oltr.registry import Registry
from oltr.runs.outputs import OPEN, Outputs

Learned = TypeVar("Learned")
AnyScore = TypeVar("AnyScore", bound="type[Score]")


@dataclass(frozen=True)
class ScoreInfo:
    """Where a score comes from and what it looks at, for `oltr methods`, the docs and the tests."""

    title: str
    summary: str
    paper: str
    year: int
    changes: str = ""  # what we do differently from the paper, and why


class Score(ABC):
    """A number per image, with the side of a threshold on which the image is called unknown."""

    name: ClassVar[str]
    info: ClassVar[ScoreInfo]
    higher_is_known: ClassVar[bool]
    default_threshold: ClassVar[float | None] = None  # None: there is no number that suits every data set
    limits: ClassVar[tuple[float, float]] = (-inf, inf)  # between which every value lies
    needs: ClassVar[Literal["outputs", "training outputs", "images"]] = "outputs"

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


class FittedScore(Score, Generic[Learned]):
    """A score that first looks at the training images: `fit` gives a copy of it that has."""

    needs = "training outputs"
    learned: Learned | None = None
    _found: WeakKeyDictionary[Outputs, Tensor]  # a report asks for the same values several times

    @abstractmethod
    def learn(self, training: Outputs) -> Learned:
        """What is kept of the training images."""

    @abstractmethod
    def compare(self, outputs: Outputs, learned: Learned) -> Tensor:
        """The value of each image beside what was learned, N float64."""

    def fit(self, training: Outputs) -> FittedScore[Learned]:
        """This score, having seen the outputs of the training images (centre-cropped, not augmented)."""
        if len(training) == 0 or bool((training.labels == OPEN).any()):
            raise UserError(
                f"The score {self.name!r} needs outputs of training images of known classes.",
                "There are none." if len(training) == 0 else "Some of these images have no known class.",
            )
        if not (training.logits.isfinite().all() and training.features.isfinite().all()):
            raise UserError(
                "The outputs of the training images hold NaN or infinite values.",
                "The training of this network probably went astray.",
            )
        fitted = copy(self)
        fitted.learned = self.learn(training)
        fitted._found = WeakKeyDictionary()
        return fitted

    def value(self, outputs: Outputs) -> Tensor:
        if self.learned is None:
            raise UserError(
                f"The score {self.name!r} has not seen the training images yet.",
                "It compares an image with what the network said of those.",
                "its fit(training outputs), which `oltr evaluate` does by itself",
            )
        if outputs not in self._found:
            self._found[outputs] = self.compare(outputs, self.learned)
        return self._found[outputs]


SCORES: Registry[Score] = Registry("score")


def register(score: AnyScore) -> AnyScore:
    """Class decorator that files a score under its name."""
    SCORES.register(score.name)(score())
    return score
