import pytest
import torch

from oltr.errors import UserError
from oltr.openset.scores import SCORES
from oltr.openset.threshold import check_choice, choose_threshold, settle_threshold
from oltr.runs.outputs import Outputs

REACHABILITY, SOFTMAX = SCORES["reachability"], SCORES["softmax"]


def validation(values, labels=None) -> Outputs:
    values = torch.as_tensor(values, dtype=torch.float32)
    labels = torch.zeros(len(values)) if labels is None else torch.as_tensor(labels)
    return Outputs(
        torch.stack([values, 0 * values], 1), labels, torch.zeros(len(values), 1), reachability=values
    )


@pytest.mark.parametrize("score", [REACHABILITY, SOFTMAX], ids=lambda score: score.name)
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.29, 0.5, 0.99])
@pytest.mark.parametrize(("n", "distinct"), [(100, 10**6), (100, 8), (100, 1), (7, 4), (1, 1)])
def test_no_threshold_rejects_more_within_the_rate(score, rate, n, distinct):
    generator = torch.Generator().manual_seed(n + distinct)
    known = validation(torch.randint(distinct, (n,), generator=generator) / distinct)
    values = score.value(known)
    got = int(score.is_unknown(values, choose_threshold(score, known, rate)).sum())
    candidates = [*values.unique().tolist(), -1e9, 1e9]
    possible = [int(score.is_unknown(values, t).sum()) for t in candidates]
    assert got == max(count for count in possible if count <= rate * n + 1e-9)


def test_without_ties_the_rate_is_met_exactly():
    known = validation(torch.arange(100.0))
    threshold = choose_threshold(REACHABILITY, known, 0.29)  # 0.29 * 100 < 29 in floating point
    assert REACHABILITY.is_unknown(REACHABILITY.value(known), threshold).sum() == 29


def test_open_images_have_no_say():
    mixed = validation([1.0, 2.0, 3.0, 4.0, 50.0, 60.0], [0, 0, 0, 0, -1, -1])
    assert choose_threshold(REACHABILITY, mixed, 0.25) == 3.0


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, float("nan")])
def test_rates_outside_zero_and_one(rate):
    with pytest.raises(UserError, match="between 0 and 1"):
        choose_threshold(SOFTMAX, validation([1.0]), rate)


@pytest.mark.parametrize("empty", [None, validation([]), validation([1.0], [-1])])
def test_no_validation_images(empty):
    with pytest.raises(UserError, match="no validation images"):
        choose_threshold(SOFTMAX, empty, 0.05)


def test_nan_is_told():
    with pytest.raises(UserError, match="NaN for 1 validation"):
        choose_threshold(REACHABILITY, validation([1.0, torch.nan]), 0.05)


def test_which_threshold_holds():
    known = validation([1.0, 2.0, 3.0, 4.0])
    assert settle_threshold(SOFTMAX, None, None, None) == 0.1
    assert settle_threshold(SOFTMAX, None, 0.3, None) == 0.3
    assert settle_threshold(REACHABILITY, known, None, 0.5) == 2.0
    with pytest.raises(UserError, match="Both"):
        settle_threshold(SOFTMAX, known, 0.3, 0.05)
    with pytest.raises(UserError, match="--unknown-rate"):
        settle_threshold(REACHABILITY, known, None, None)
    with pytest.raises(UserError, match="finite"):
        settle_threshold(SOFTMAX, known, float("nan"), None)


@pytest.mark.parametrize("name", ["softmax", "openmax", "odin"])
def test_a_threshold_on_a_probability_is_one(name):
    for threshold in (-0.1, 2.0):
        with pytest.raises(UserError, match="between 0 and 1"):
            check_choice(SCORES[name], threshold, None)
    check_choice(SCORES[name], 1.0, None)
