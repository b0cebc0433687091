"""Rank 1 by group: against a loop, with the gap and what chance makes of it."""

import numpy as np
import pytest

from oltr.identify.group_rates import gap_by_chance, group_rates
from oltr.identify.groups import Grouping


def grouping(of, names=None):
    return Grouping("sex", np.array(of, dtype=object), tuple(names or sorted({*of} - {""})))


def test_by_hand():
    """Probes count as often as they have mates; one has none, one is in no group, and nobody is in x."""
    hits = np.array([1.0, 0.5, 0.0, np.nan, 1.0, 1.0])
    trials = np.array([1, 2, 1, 0, 3, 4])
    people = np.array([0, 0, 1, 1, 2, 3])
    found = group_rates(grouping(["f", "f", "f", "m", "m", ""], ["f", "m", "x"]), hits, trials, people)
    assert [group.name for group in found.groups] == ["f", "m", "x"]
    f, m, x = found.groups
    assert (f.accuracy, f.images, f.classes) == (0.5, 3, 2) and (m.accuracy, m.images) == (1.0, 1)
    assert f.class_mean == pytest.approx((2 / 3 + 0) / 2)
    assert x.accuracy is None and x.images == 0 and x.interval["accuracy"] is None
    assert (found.worst, found.best, found.gap) == ("f", "m", 0.5)
    assert found.overall.images == 4 and found.overall.accuracy == pytest.approx(5 / 7)
    low, high = f.interval["accuracy"]
    assert 0 < low < 0.5 < high < 1


def test_a_group_of_few_probes_makes_no_gap():
    of = ["a"] * 20 + ["b"] * 20 + ["c"]
    hits = np.array([1.0] * 15 + [0.0] * 5 + [1.0] * 10 + [0.0] * 10 + [0.0])
    found = group_rates(grouping(of), hits, np.ones(41, int), np.arange(41))
    assert (found.worst, found.gap) == ("b", 0.25) and found.groups[0].name == "c"


def test_one_group_has_no_gap():
    found = group_rates(grouping(["a", "a"]), np.ones(2), np.ones(2, int), np.arange(2))
    assert found.gap is None and found.worst is None and found.gap_by_chance is None


def slow_gaps(groups, hits, trials, draws):
    """Gaps between groups of probes drawn at random, one by one."""
    rng, gaps = np.random.default_rng(1), []
    for _ in range(draws):
        drawn = rng.permutation(groups)
        rates = [np.average(hits[drawn == g], weights=trials[drawn == g]) for g in sorted(set(groups))]
        gaps.append(max(rates) - min(rates))
    return np.array(gaps)


def test_chance_among_probes():
    rng = np.random.default_rng(0)
    groups, trials = np.array(["a", "b", "c"] * 20), rng.integers(1, 4, 60)
    hits, people = (rng.random(60) < 0.6).astype(float), np.repeat(np.arange(20), 3)  # all in every group
    found = gap_by_chance(groups, hits, trials, people)
    gaps = slow_gaps(groups, hits, trials, 2000)
    assert np.quantile(gaps, 0.93) <= found <= np.quantile(gaps, 0.97)


def test_chance_among_people_who_are_in_one_group():
    """Ten images of each stand or fall together, so chance makes gaps as if there were one of each."""
    people = np.repeat(np.arange(12), 10)
    groups, hits = np.where(people < 6, "f", "m"), (people % 2 == 0).astype(float)
    found = gap_by_chance(groups, hits, np.ones(120, int), people)
    alone = gap_by_chance(groups[::10], hits[::10], np.ones(12, int), people[::10])
    assert found == alone > 0.6
    assert slow_gaps(groups, hits, np.ones(120), 200).max() < found
