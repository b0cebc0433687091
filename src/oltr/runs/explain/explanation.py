"""Everything that can be said of why a network names an image as it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from oltr.errors import UserError
from oltr.openset import SCORES, RejectionRule
from oltr.runs.explain.attention_maps import AttentionMaps
from oltr.runs.explain.infused import Concepts
from oltr.runs.explain.nearest_classes import NearestClasses
from oltr.runs.explain.score_place import ScorePlace

SCHEMA = 1
Part = TypeVar("Part")


@dataclass(frozen=True)
class Missing:
    """A part that cannot be made."""

    why: str


@dataclass(frozen=True)
class Candidate:
    """A class that the network gives some probability."""

    name: str
    probability: float
    train_count: int
    shots: str


@dataclass(frozen=True)
class Verdict:
    """Unknown or not, and by what."""

    unknown: bool
    rule: RejectionRule
    value: float  # in the score's own units

    def reason(self) -> str:
        """The comparison in words."""
        limit = self.rule.threshold
        side = "below" if self.value < limit else "above" if self.value > limit else "at"
        words = f"{self.rule.score} {self.value:.4g} is {side} the threshold {limit:.4g}"
        if self.rule.unknown_rate is None:
            return words
        rate = f"{100 * self.rule.unknown_rate:.3g} %"
        return f"{words}, which rejects at most {rate} of the known validation images"


@dataclass(frozen=True)
class Strong:
    """A training image that activates a neuron, and the square in which it does."""

    path: str
    activation: float
    box: tuple[int, int, int, int]  # left, top, right, bottom in pixels of what the network sees


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest classes with a training image of each, where these are at hand."""

    found: NearestClasses
    names: Sequence[str]
    examples: np.ndarray | Missing  # T×s×s×3 uint8


@dataclass(frozen=True, eq=False)
class Explanation:
    """The verdict on one image; each further part, or why it is missing."""

    image: str
    run: str
    method: str
    picture: np.ndarray  # s×s×3 uint8, what the network sees
    candidates: Sequence[Candidate]  # the likeliest first
    verdict: Verdict
    place: ScorePlace | Missing
    nearest: Nearest | Missing
    concepts: Concepts | Missing
    attention: AttentionMaps | Missing
    strongest: Mapping[int, Sequence[Strong]] = field(default_factory=dict)  # neuron → training images

    def to_dict(self) -> dict[str, Any]:
        """What `oltr explain --json` prints, in JSON's own types; see docs/explain.md."""
        first, verdict = self.candidates[0], self.verdict
        return {
            "schema": SCHEMA,
            "image": self.image,
            "run": self.run,
            "method": self.method,
            "label": first.name,
            "probability": first.probability,
            "unknown": verdict.unknown,
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "decision": {
                "score": verdict.rule.score,
                "higher_is_known": SCORES[verdict.rule.score].higher_is_known,
                "value": verdict.value,
                "threshold": verdict.rule.threshold,
                "unknown_rate": verdict.rule.unknown_rate,
                "less_familiar": _either(self.place, lambda place: dict(place.less_familiar)),
            },
            "nearest": _either(self.nearest, _nearest),
            "infused": _either(self.concepts, self._infused),
            "attention": _either(self.attention, _attention),
        }

    def _infused(self, concepts: Concepts) -> dict[str, Any]:
        given = concepts.infused
        neurons = [
            {
                "neuron": int(neuron),
                "infused": float(amount),
                "direct": float(direct),
                "strongest": [asdict(image) for image in self.strongest.get(int(neuron), ())],
            }
            for neuron, amount, direct in zip(
                given.neurons[0], given.amounts[0], given.direct[0], strict=True
            )
        ]
        among = {"missing": concepts.missing} if concepts.missing else {"among": concepts.looked_at}
        return {"neurons": neurons, **among}


def part(make: Callable[[], Part]) -> Part | Missing:
    """What `make` gives, or the reason it names for giving nothing."""
    try:
        return make()
    except UserError as problem:
        return Missing(" ".join(str(problem).split()))


def _either(value: Any, told: Callable[[Any], Any]) -> Any:
    return {"missing": value.why} if isinstance(value, Missing) else told(value)


def _nearest(nearest: Nearest) -> dict[str, Any]:
    pairs = zip(nearest.names, nearest.found.distances, strict=True)
    classes = [{"name": name, "distance": float(distance)} for name, distance in pairs]
    return {"of": nearest.found.of, "classes": classes}


def _attention(maps: AttentionMaps) -> dict[str, Any]:
    parts = {"self": maps.self_attention, "spatial": maps.spatial, "modulated": maps.modulated}
    return {"map_size": list(maps.size)} | {
        name: None if values is None else values[0].tolist() for name, values in parts.items()
    }
