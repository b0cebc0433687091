"""Rates against a slow protocol that builds every gallery and sorts it."""

import numpy as np
import pytest
import torch

from oltr.identify.mates import mate_counts, mate_pairs
from oltr.identify.pseudo_shots import pseudo_shots
from oltr.identify.rates import identified, threshold_at


def made(seed=0, probes=40, gallery=120, dims=6):
    """Crowded features, so that many are mistaken; people 0..9, of whom 8 and 9 are not in the gallery."""
    rng = np.random.default_rng(seed)
    who, there = rng.integers(0, 10, probes), rng.integers(-1, 8, gallery)
    there[: gallery // 3] = -1
    centres = rng.normal(size=(11, dims))
    features = [centres[each] + rng.normal(size=(len(each), dims)) for each in (who, there)]
    return [torch.from_numpy(f).float() for f in features], who, there


def cosine(a, b):
    a, b = a.double().numpy(), b.double().numpy()
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def slow(features, who, there, mates, k):
    """Hit rate of each probe with mates, and the top similarity to others of each probe."""
    probes, gallery = features
    hits, tops = {}, {}
    for p, person in enumerate(who):
        similar = [cosine(probes[p], g) for g in gallery]
        if mates == "each":
            others = [s for s, g in zip(similar, there, strict=True) if g < 0]
        else:
            others = [s for s, g in zip(similar, there, strict=True) if g != person]
        tops[p] = max(others)
        own = [s for s, g in zip(similar, there, strict=True) if g == person]
        own = own if mates == "each" else [max(own)] if own else []
        if own:
            hits[p] = np.mean([1 + sum(o >= s for o in others) <= k for s in own])
    return hits, tops


@pytest.mark.parametrize("mates", ["nearest", "each"])
@pytest.mark.parametrize("parts", [1, 2])
def test_ranks_as_in_the_slow_protocol(mates, parts):
    features, who, there = made()
    cuts = [slice(0, 120)] if parts == 1 else [slice(40, 120), slice(0, 40)]  # the second: nobody's
    gallery, numbers = [features[1][cut] for cut in cuts], [there[cut] for cut in cuts]
    found = identified(features[0], gallery, [who, *numbers], ranks=(1, 3, 5), mates=mates)
    for k in (1, 3, 5):
        expected, tops = slow(features, who, there, mates, k)
        assert set(np.flatnonzero(~np.isnan(found.hits[k]))) == set(expected)
        for probe, value in expected.items():
            assert found.hits[k][probe] == pytest.approx(value)
    absent = [tops[p] for p in range(len(who)) if p not in expected]
    assert found.strangers == len(absent) > 5 and not found.as_if
    assert found.thresholds[0.01] == pytest.approx(max(absent))
    assert 0 < np.nanmean(found.hits[1]) < np.nanmean(found.hits[5]) < 1


def test_detected_are_first_and_above_the_threshold():
    probes = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    gallery = torch.tensor([[1.0, 0.1], [0.1, 1.0], [1.0, 0.7]])
    found = identified(probes, [gallery], [np.array([0, 1, -1]), np.array([0, -1, 1])])
    # The stranger's nearest has a cosine of 0.995; person 0 has that too, person 1 0.985.
    assert found.hits[1].tolist()[:2] == [1, 1] and np.isnan(found.hits[1][2])
    assert found.detected[0.01].tolist()[:2] == [0, 0]
    nearer = identified(
        probes, [gallery * torch.tensor([1, 0.5])], [np.array([0, 1, -1]), np.array([0, -1, 1])]
    )
    assert nearer.detected[0.01].tolist()[:2] == [1, 0]


def test_a_mate_as_similar_as_a_false_alarm_is_not_detected():
    """A stranger whose feature is the probe's, but for its length: only rounding tells them apart."""
    for seed in range(30):
        probe, mate = torch.randn(2, 1, 9, generator=torch.Generator().manual_seed(seed)).double()
        probes, gallery = torch.cat([probe, 0.3 * probe]), torch.cat([mate, -probe])
        found = identified(probes, [gallery], [np.array([0, -1]), np.array([0, -1])])
        assert found.detected[0.01][0] == 0


def test_without_strangers_each_probe_is_one_with_its_mates_left_out():
    features, who, there = made()
    kept = who < 8
    probes, who = features[0][torch.from_numpy(kept)], who[kept]
    found = identified(probes, [features[1]], [who, there])
    _, tops = slow([probes, features[1]], who, there, "nearest", 1)
    assert found.as_if and found.strangers == len(who)
    assert found.thresholds[0.01] == pytest.approx(max(tops.values()))


def test_what_is_equally_similar_stands_before_the_mate():
    """A network that gives every image the same feature identifies nobody."""
    same = torch.ones(4, 3)
    found = identified(same, [torch.ones(8, 3)], [np.arange(4), np.repeat(np.arange(4), 2)])
    assert (found.hits[1] == 0).all() and (found.hits[5] == 0).all()


def test_every_mate_is_among_more_than_there_are():
    features, who, there = made()
    found = identified(features[0], [features[1]], [who, there], ranks=(1, 119, 10**12))
    assert (found.hits[10**12][found.trials > 0] == 1).all() and np.isnan(found.hits[1]).sum() > 5
    np.testing.assert_array_equal(found.hits[1], identified(features[0], [features[1]], [who, there]).hits[1])


def test_an_image_is_not_its_own_mate():
    features, who, _ = made()
    rows = np.arange(len(who))
    found = identified(features[0], [features[0]], [who, who], own_rows=rows)
    for p in rows:
        rest = rows != p
        own = [cosine(features[0][p], features[0][r]) for r in rows[rest & (who == who[p])]]
        others = [cosine(features[0][p], features[0][r]) for r in rows[who != who[p]]]
        assert found.hits[1][p] == (max(own) > max(others))
    with_itself = identified(features[0], [features[0]], [who, who])
    assert np.nanmean(with_itself.hits[1]) == 1


@pytest.mark.parametrize("at_a_time", [1, 5, 1000])
def test_pairs_of_mates(at_a_time):
    probes, gallery = np.array([2, -1, 0, 2, -2]), np.array([0, 2, -1, 2, 5, -2])
    own = np.array([3, -1, -1, -1, 5])
    parts = [*mate_pairs(probes, gallery, own, at_a_time)]
    pairs = [(int(q), int(r)) for part in parts for q, r in zip(*part, strict=True)]
    assert sorted(pairs) == [(0, 1), (2, 0), (3, 1), (3, 3)]
    assert all(len(query) <= at_a_time + 1 for query, _ in parts)
    assert mate_counts(probes, gallery, own).tolist() == [1, 0, 1, 2, 0]
    none = np.array([], int)
    assert not [q for query, _ in mate_pairs(none, gallery, none) for q in query]
    assert not [q for query, _ in mate_pairs(probes, none, own) for q in query]


def test_thresholds():
    values = np.arange(1000.0)
    for rate, allowed in ((0.01, 10), (0.001, 1), (0.0005, 0)):
        limit = threshold_at(np.random.default_rng(0).permutation(values), rate)
        assert (values > limit).sum() == allowed
    assert threshold_at(np.array([0.3]), 1.0) == 0.3


def test_pseudo_shots():
    training = torch.tensor([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 3 + [[-1.0, 0.0]] + [[0.0, -1.0]] * 0)
    probes = torch.tensor([[1.0, 0.2], [0.2, 1.0], [-1.0, 0.2], [0.0, -1.0], [1.0, 1.0]])
    assert pseudo_shots(probes, training).tolist() == ["many", "few", "one", "zero", "many"]
    assert pseudo_shots(probes, training, similar=0.8).tolist() == ["many", "few", "one", "zero", "zero"]
    assert pseudo_shots(probes[:1], training[:4]).tolist() == ["few"]
    exactly = torch.tensor([[1.0, 0.0]])
    assert pseudo_shots(exactly, exactly, similar=1.0).tolist() == ["zero"]  # greater, not equal
