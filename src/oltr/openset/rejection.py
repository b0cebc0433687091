"""The rejection rule of a recogniser: by which score and threshold an image is called unknown."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from oltr.openset.scores import SCORES


@dataclass(frozen=True)
class RejectionRule:
    """An image is unknown when its score lies beyond the threshold."""

    score: str
    threshold: float
    unknown_rate: float | None = None  # share of known validation images it was chosen to reject at most
    note: str = ""  # why it is another rule than the one asked for

    def rejects(self, values: Tensor) -> Tensor:
        """Which images are unknown, by their values of the score: N → N bool."""
        return SCORES[self.score]().is_unknown(values, self.threshold)

    def __str__(self) -> str:
        """One short sentence."""
        side = "below" if SCORES[self.score].higher_is_known else "above"
        rate = self.unknown_rate
        why = "" if rate is None else f", which rejects at most {100 * rate:.3g} % of known validation images"
        return f"An image is unknown when its {self.score} score is {side} {self.threshold:.4g}{why}."
