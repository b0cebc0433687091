"""Scores of different units added: each less its mean and over its deviation on known images."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

from torch import Tensor

from oltr.openset.cosine import Cosine
from oltr.openset.max_logit import MaxLogit
from oltr.openset.moments import ROUNDING
from oltr.openset.relative_mahalanobis import RelativeMahalanobis
from oltr.openset.scale import Scale70
from oltr.openset.scores import FittedScore, Score, ScoreInfo, register
from oltr.openset.spread_cosine import SpreadCosine
from oltr.openset.unit_mahalanobis import UnitMahalanobis
from oltr.openset.whitened_cosine import WhitenedCosine


class _Part(NamedTuple):
    score: Score
    mean: Tensor
    deviation: Tensor


class SumOfScores(FittedScore[tuple[_Part, ...]]):
    """Σ_i (s_i − mean s_i) / deviation s_i, every s_i turned so that high is unknown.

    Mean and deviation are those of validation images (`calibrate`), or of the training images where there are
    none: a network is surer of these, and their features lie closer to means made of themselves.
    """

    parts: ClassVar[tuple[type[Score], ...]]
    higher_is_known = False
    uses_validation = True

    def learn(self, features: Tensor, logits: Tensor, labels: Tensor) -> tuple[_Part, ...]:
        fitted = [part().fit(features, logits, labels) for part in self.parts]
        return tuple(_standardised(score, features, logits) for score in fitted)

    def calibrate(self, features: Tensor, logits: Tensor) -> Self:
        if self.learned is not None and len(features):
            self.learned = tuple(_standardised(part.score, features, logits) for part in self.learned)
            self._last = None
        return self

    def compare(self, features: Tensor, logits: Tensor, learned: tuple[_Part, ...]) -> Tensor:
        values = [(part.score(features, logits) - part.mean) / part.deviation for part in learned]
        return sum(values[1:], values[0])


def _standardised(score: Score, features: Tensor, logits: Tensor) -> _Part:
    values = score(features, logits)
    mean, deviation = values.mean(), values.std(correction=0)
    # Images that are all alike say nothing about the unit.
    alike = deviation <= ROUNDING * mean.abs()
    return _Part(score, mean, deviation.masked_fill(alike, 1.0))


def _info(*parts: type[Score]) -> ScoreInfo:
    infos = [part.info for part in parts]
    return ScoreInfo(
        title=" + ".join(info.title for info in infos),
        summary=f"The sum of {' and '.join(part.name for part in parts)}, each standardised on validation "
        "images",
        paper="; ".join(info.paper for info in infos),
        year=max(info.year for info in infos),
        changes="the combination is ours",
    )


@register
class MaxLogitAndUnitMahalanobis(SumOfScores):
    """The largest logit and the distance of directions."""

    name = "max-logit+unit-mahalanobis"
    parts = (MaxLogit, UnitMahalanobis)
    info = _info(*parts)


@register
class MaxLogitAndRelativeMahalanobis(SumOfScores):
    """The largest logit and the relative distance."""

    name = "max-logit+relative-mahalanobis"
    parts = (MaxLogit, RelativeMahalanobis)
    info = _info(*parts)


@register
class MaxLogitAndCosine(SumOfScores):
    """The largest logit and the cosine to the nearest class mean."""

    name = "max-logit+cosine"
    parts = (MaxLogit, Cosine)
    info = _info(*parts)


@register
class ScaleAndWhitenedCosine(SumOfScores):
    """The energy of scaled logits and the whitened cosine to the nearest class mean."""

    name = "scale-70+whitened-cosine"
    parts = (Scale70, WhitenedCosine)
    info = _info(*parts)


@register
class ScaleAndSpreadCosine(SumOfScores):
    """The energy of scaled logits and the whitened cosine beside the spread of the activations."""

    name = "scale-70+spread-cosine"
    parts = (Scale70, SpreadCosine)
    info = _info(*parts)
