"""The threshold between known and unknown, chosen without ever looking at an open image."""

from __future__ import annotations

import math

from torch import Tensor

from oltr.errors import UserError
from oltr.openset.scores import Score


def choose_threshold(score: Score | type[Score], known: Tensor | None, unknown_rate: float) -> float:
    """The threshold that rejects as many known validation images as it can, at most that share of them.

    `known` are their values of the score (N). With these sorted from least to most familiar and
    k = ⌊rate · N⌋ it is the value at place k: an image on the threshold is known, so k images, or fewer when
    some share that value, lie beyond it.
    """
    _check_rate(unknown_rate)
    if known is None or len(known) == 0:
        raise UserError(
            "There are no validation images to choose a threshold on.",
            "An unknown rate is met on validation images of the known classes.",
            "data with a val split, or a threshold of your own",
        )
    if known.isnan().any():
        raise UserError(
            f"The score {score.name!r} is NaN for {int(known.isnan().sum())} validation images.",
            "The network's outputs are not numbers; its training probably diverged.",
        )
    # The small addend keeps e.g. 0.29 · 100 = 28.999999999999996 from losing an image.
    allowed = math.floor(unknown_rate * len(known) + 1e-9)
    return float(known.sort(descending=not score.higher_is_known).values[allowed])


def check_choice(score: Score | type[Score], threshold: float | None, unknown_rate: float | None) -> None:
    """Refuse a threshold or rate that no data could meet, before any work is done."""
    if threshold is not None and unknown_rate is not None:
        raise UserError(
            "Both a threshold and an unknown rate were given.",
            "The unknown rate chooses the threshold, so only one of them can hold.",
            "--threshold or --unknown-rate, not both",
        )
    if threshold is not None and not math.isfinite(threshold):
        raise UserError(f"The threshold must be a finite number; got {threshold}.")
    low, high = score.limits
    if threshold is not None and not low <= threshold <= high:
        raise UserError(
            f"A threshold of {threshold:g} divides nothing: "
            f"the score {score.name!r} lies between {low:g} and {high:g}."
        )
    if unknown_rate is not None:
        _check_rate(unknown_rate)
    if threshold is None and unknown_rate is None and score.default_threshold is None:
        raise UserError(
            f"The score {score.name!r} has no default threshold.",
            "Its range depends on the network and the data.",
            "--unknown-rate 0.05, or a --threshold of your own",
        )


def settle_threshold(
    score: Score | type[Score], known: Tensor | None, threshold: float | None, unknown_rate: float | None
) -> float:
    """The threshold given, else the one that meets the unknown rate, else the score's own default."""
    check_choice(score, threshold, unknown_rate)
    if threshold is not None:
        return float(threshold)
    if unknown_rate is not None:
        return choose_threshold(score, known, unknown_rate)
    assert score.default_threshold is not None
    return score.default_threshold


def _check_rate(unknown_rate: float) -> None:
    if not 0 < unknown_rate < 1:
        raise UserError(
            f"The unknown rate must lie between 0 and 1; got {unknown_rate}.",
            "It is the share of known validation images that may be rejected.",
            "0.05",
        )
