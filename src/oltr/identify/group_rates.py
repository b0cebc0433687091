"""How groups of probes differ: rank 1 of each with its interval, the gap, and the gap that chance makes."""

from __future__ import annotations

import numpy as np

from oltr.identify.groups import Grouping
from oltr.identify.rates import mean_of
from oltr.metrics.by_group import ALL, DRAWS, with_gap
from oltr.metrics.group_numbers import GroupAccuracy, GroupNumbers
from oltr.metrics.intervals import wilson_interval


def group_rates(
    grouping: Grouping, hits: np.ndarray, trials: np.ndarray, people: np.ndarray
) -> GroupAccuracy:
    """Of P probes the share of hits, mates looked for and identity (P each), as `group_accuracy` has images.

    `images` are probes with a mate, `classes` people. Intervals take the probes as independent.
    """
    found = [
        _numbers(name, hits[here], trials[here], people[here])
        for name, here in ((name, grouping.of == name) for name in grouping.names)
    ]
    named = grouping.of != ""
    overall = _numbers(ALL, hits[named], trials[named], people[named])

    def chance(compared: set[str]) -> float:
        kept = np.isin(grouping.of, [*compared]) & (trials > 0)
        return gap_by_chance(grouping.of[kept], hits[kept], trials[kept], people[kept])

    return with_gap(found, overall, chance)


def gap_by_chance(groups: np.ndarray, hits: np.ndarray, trials: np.ndarray, people: np.ndarray) -> float:
    """The 95 % quantile of the gap between groups of the same sizes that are drawn at random.

    Where nobody is in two groups (sex), whole people are drawn: the images of one stand or fall together.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    _, first, person = np.unique(people, return_index=True, return_inverse=True)
    if not (codes == codes[first][person]).all():
        first = person = np.arange(len(codes))
    right, tried = np.bincount(person, hits * trials), np.bincount(person, trials)
    codes, draw = codes[first], np.random.default_rng(0)  # the same probes, the same number
    gaps = np.empty(DRAWS)
    for number in range(DRAWS):
        drawn = draw.permutation(codes)
        gaps[number] = np.ptp(np.bincount(drawn, right) / np.bincount(drawn, tried))
    return float(np.quantile(gaps, 0.95))


def _numbers(name: str, hits: np.ndarray, trials: np.ndarray, people: np.ndarray) -> GroupNumbers:
    tried = trials > 0
    rate, probes = mean_of(hits, trials), int(tried.sum())
    _, person = np.unique(people[tried], return_inverse=True)
    each = np.bincount(person, (hits * trials)[tried]) / np.maximum(np.bincount(person, trials[tried]), 1)
    within = None if rate is None else list(wilson_interval(round(rate * probes), probes))
    return GroupNumbers(
        name=name,
        images=probes,
        classes=len(each),
        accuracy=rate,
        class_mean=float(each.mean()) if len(each) else None,
        expected=None,
        rejected=None,
        open_images=0,
        unknown_recall=None,
        interval={"accuracy": within},
    )
