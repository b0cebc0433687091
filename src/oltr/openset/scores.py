"""The contract of a score: how unfamiliar an image looks, as a number and a side of a threshold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Generic, Literal, Self, TypeVar

from torch import Tensor

from oltr.errors import UserError
from oltr.registry import Registry

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
    """A number per image from its features (N×D), logits (N×K) and, if there is a memory, reachability (N).

    First `score.fit(features, logits, labels)` on training images where `needs_fit`; then the call gives N
    float64, higher is more unknown. `value` is the same in the score's own units, in which thresholds are.
    """

    name: ClassVar[str]
    info: ClassVar[ScoreInfo]
    higher_is_known: ClassVar[bool]
    default_threshold: ClassVar[float | None] = None  # None: there is no number that suits every data set
    limits: ClassVar[tuple[float, float]] = (-inf, inf)  # between which every value lies
    needs_fit: ClassVar[bool] = False
    uses_validation: ClassVar[bool] = False  # where there are such images, `calibrate` reads them

    @property
    def view(self) -> str:
        """Which view of the images it reads outputs of: "" for the images as they are, else a name."""
        return ""

    @property
    def needs(self) -> Literal["outputs", "training outputs", "images"]:
        """What has to be at hand: cached outputs, those of the training images too, or the images."""
        return "images" if self.view else "training outputs" if self.needs_fit else "outputs"

    def fit(self, features: Tensor, logits: Tensor, labels: Tensor) -> Self:
        """Learn from the training images (centre-cropped, not augmented): N×D, N×K, N; returns self."""
        return self

    def calibrate(self, features: Tensor, logits: Tensor) -> Self:
        """After `fit`, read images of known classes that trained nothing: N×D, N×K; returns self."""
        return self

    @abstractmethod
    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        """The score in its own units, N float64."""

    def __call__(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        """The score turned so that higher is more unknown, N float64."""
        value = self.value(features, logits, reachability)
        return -value if self.higher_is_known else value

    def is_unknown(self, values: Tensor, threshold: float) -> Tensor:
        """N bool: strictly beyond the threshold; an image exactly on it is known."""
        return values < threshold if self.higher_is_known else values > threshold

    def change(self, logits_of: Callable[[Tensor], Tensor], images: Tensor, std: Sequence[float]) -> Tensor:
        """The view it reads, of images normalised by `std`: B×3×S×S → B×3×S×S."""
        return images


class FittedScore(Score, Generic[Learned]):
    """A score that compares images with the training images."""

    needs_fit = True
    learned: Learned | None = None
    _last: tuple[Tensor, Tensor, Tensor] | None = None  # a report asks for the same values twice

    @abstractmethod
    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> Learned:
        """What is kept of the training images."""

    @abstractmethod
    def compare(self, features: Tensor, logits: Tensor, learned: Learned) -> Tensor:
        """The value of each image beside what was learned, N float64."""

    def fit(self, features: Tensor, logits: Tensor, labels: Tensor) -> Self:
        if len(labels) == 0 or bool((labels < 0).any()):
            raise UserError(
                f"The score {self.name!r} needs outputs of training images of known classes.",
                "There are none." if len(labels) == 0 else "Some of these images have no known class.",
            )
        if not (logits.isfinite().all() and features.isfinite().all()):
            raise UserError(
                "The outputs of the training images hold NaN or infinite values.",
                "The training of this network probably diverged.",
            )
        self.learned, self._last = self.learn(features, logits, labels), None
        return self

    def value(self, features: Tensor, logits: Tensor, reachability: Tensor | None = None) -> Tensor:
        return self._compared(features, logits)

    def _compared(self, features: Tensor, logits: Tensor) -> Tensor:
        if self.learned is None:
            raise UserError(
                f"The score {self.name!r} has not been fitted.",
                "It compares an image with the training images.",
                "fit(features, logits, labels) of the training images; `oltr evaluate` does it by itself",
            )
        if self._last is None or self._last[0] is not features or self._last[1] is not logits:
            self._last = features, logits, self.compare(features, logits, self.learned)
        return self._last[2]


SCORES: Registry[type[Score]] = Registry(
    "score", "oltr.scores", Score, {"name": str, "info": ScoreInfo, "higher_is_known": bool}
)


def register(score: AnyScore) -> AnyScore:
    """Class decorator that files a score under its name."""
    SCORES.register(score.name)(score)
    return score
