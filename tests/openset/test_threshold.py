"""Thresholds from rates, given ones and defaults."""

import pytest
import torch

from oltr.errors import UserError
from oltr.openset import SCORES, Reachability, RejectionRule, Softmax, choose_threshold
from oltr.openset.threshold import check_choice, settle_threshold


def values(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.mark.parametrize("score", [Reachability(), Softmax()], ids=lambda score: score.name)
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.29, 0.5, 0.99])
@pytest.mark.parametrize(("n", "distinct"), [(100, 10**6), (100, 8), (100, 1), (7, 4), (1, 1)])
def test_no_threshold_rejects_more_within_the_rate(score, rate, n, distinct):
    generator = torch.Generator().manual_seed(n + distinct)
    known = torch.randint(distinct, (n,), generator=generator).double() / distinct
    got = int(score.is_unknown(known, choose_threshold(score, known, rate)).sum())
    candidates = [*known.unique().tolist(), -1e9, 1e9]
    possible = [int(score.is_unknown(known, t).sum()) for t in candidates]
    assert got == max(count for count in possible if count <= rate * n + 1e-9)


def test_without_ties_the_rate_is_met_exactly():
    known = torch.arange(100.0)
    threshold = choose_threshold(Reachability(), known, 0.29)  # 0.29 * 100 < 29 in floating point
    assert Reachability().is_unknown(known, threshold).sum() == 29


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, float("nan")])
def test_rates_outside_zero_and_one(rate):
    with pytest.raises(UserError, match="between 0 and 1"):
        choose_threshold(Softmax(), values(1.0), rate)


@pytest.mark.parametrize("empty", [None, values()])
def test_no_validation_images(empty):
    with pytest.raises(UserError, match="no validation images"):
        choose_threshold(Softmax(), empty, 0.05)


def test_nan_is_told():
    with pytest.raises(UserError, match="NaN for 1 validation"):
        choose_threshold(Reachability(), values(1.0, torch.nan), 0.05)


def test_which_threshold_holds():
    known = values(1.0, 2.0, 3.0, 4.0)
    assert settle_threshold(Softmax, None, None, None) == 0.1
    assert settle_threshold(Softmax(), None, 0.3, None) == 0.3
    assert settle_threshold(Reachability(), known, None, 0.5) == 2.0
    with pytest.raises(UserError, match="Both"):
        settle_threshold(Softmax(), known, 0.3, 0.05)
    with pytest.raises(UserError, match="--unknown-rate"):
        settle_threshold(Reachability(), known, None, None)
    with pytest.raises(UserError, match="finite"):
        settle_threshold(Softmax(), known, float("nan"), None)


@pytest.mark.parametrize("name", ["softmax", "openmax", "odin"])
def test_a_threshold_on_a_probability_is_one(name):
    for threshold in (-0.1, 2.0):
        with pytest.raises(UserError, match="between 0 and 1"):
            check_choice(SCORES[name], threshold, None)
    check_choice(SCORES[name], 1.0, None)


def test_a_rule_rejects_beyond_its_threshold_and_says_so_in_a_sentence():
    low, high = RejectionRule("softmax", 0.3, 0.05), RejectionRule("reachability", 2.0)
    assert low.rejects(values(0.2, 0.3, 0.4)).tolist() == [True, False, False]
    assert high.rejects(values(1.0, 2.0, 3.0)).tolist() == [False, False, True]
    assert str(low) == (
        "An image is unknown when its softmax score is below 0.3, "
        "which rejects at most 5 % of known validation images."
    )
    assert str(high) == "An image is unknown when its reachability score is above 2."
