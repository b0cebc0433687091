"""Many-, medium- and few-shot classes, by the number of training images (needs NumPy alone)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oltr.errors import UserError
from oltr.registry import unknown_name

GROUPS = ("many", "medium", "few")

# rule -> (smallest count of a many-shot class, largest count of a few-shot class). The released code
# cuts at >= 100 and <= 20; the literature since then at > 100 and < 20.
SHOT_RULES: dict[str, tuple[int, int]] = {"standard": (101, 19), "released": (100, 20)}


def rule_words(rule: str) -> str:
    """Where many-shot begins and few-shot ends.

    >>> rule_words("released"), rule_words("standard")
    ('≥ 100 / ≤ 20', '> 100 / < 20')
    """
    if rule not in SHOT_RULES:
        raise unknown_name("shot rule", rule, SHOT_RULES)
    return "> 100 / < 20" if rule == "standard" else "≥ {} / ≤ {}".format(*SHOT_RULES[rule])


def shot_groups(counts: Sequence[int] | np.ndarray, rule: str = "standard") -> np.ndarray:
    """The group of each class, K training counts -> K strings: many > 100, medium 20..100, few < 20.

    >>> shot_groups([101, 100, 20, 19]).tolist()
    ['many', 'medium', 'medium', 'few']
    >>> shot_groups([101, 100, 20, 19], rule="released").tolist()
    ['many', 'many', 'few', 'few']
    """
    if rule not in SHOT_RULES:
        raise unknown_name("shot rule", rule, SHOT_RULES)
    counts = np.asarray(counts)
    if counts.ndim != 1 or (counts.size and not np.issubdtype(counts.dtype, np.integer)):
        raise UserError(
            f"Training counts must be one whole number per class; got {counts.dtype} of shape {counts.shape}."
        )
    smallest_many, largest_few = SHOT_RULES[rule]
    return np.where(counts >= smallest_many, "many", np.where(counts <= largest_few, "few", "medium"))


def shot_sizes(counts: Sequence[int] | np.ndarray, rule: str = "standard") -> dict[str, int]:
    """How many classes each group holds, in the order many, medium, few.

    >>> shot_sizes([500, 50, 5, 4])
    {'many': 1, 'medium': 1, 'few': 2}
    """
    groups = shot_groups(counts, rule)
    return {group: int((groups == group).sum()) for group in GROUPS}
