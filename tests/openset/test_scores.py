import pytest
import torch

from oltr.errors import UserError
from oltr.evaluation.outputs import Outputs
from oltr.openset.scores import SCORES


def outputs(logits, reachability=None) -> Outputs:
    n = len(logits)
    return Outputs(logits, torch.zeros(n), torch.zeros(n, 2), reachability=reachability)


def test_softmax_is_the_largest_probability():
    logits = torch.randn(9, 4)
    score = SCORES["softmax"]
    expected = torch.tensor([max(float(z.exp() / row.exp().sum()) for z in row) for row in logits])
    torch.testing.assert_close(score.value(outputs(logits)).float(), expected)
    torch.testing.assert_close(score.unknown_score(outputs(logits)).float(), 1 - expected)
    assert score.default_threshold == 0.1 and score.higher_is_known


def test_softmax_keeps_the_order_of_very_sure_answers():
    sure = outputs(torch.tensor([[20.0, 0.0], [25.0, 0.0], [30.0, 0.0]]))
    assert sure.probabilities().amax(1).unique().numel() == 1  # float32 would lose it
    assert SCORES["softmax"].unknown_score(sure).diff().lt(0).all()


def test_softmax_in_parts_and_without_images():
    logits = torch.randn(5000, 3)
    torch.testing.assert_close(
        SCORES["softmax"].value(outputs(logits)), logits.double().softmax(1).amax(1), rtol=1e-6, atol=0
    )
    assert SCORES["softmax"].value(outputs(torch.zeros(0, 3))).shape == (0,)


def test_reachability_is_known_when_low():
    score = SCORES["reachability"]
    some = outputs(torch.zeros(3, 2), torch.tensor([1.0, 2.0, 3.0]))
    assert score.value(some).tolist() == score.unknown_score(some).tolist() == [1.0, 2.0, 3.0]
    assert score.is_unknown(score.value(some), 2.0).tolist() == [False, False, True]
    assert score.default_threshold is None


def test_an_image_on_the_threshold_is_known():
    assert SCORES["softmax"].is_unknown(torch.tensor([0.1, 0.2, 0.3]), 0.2).tolist() == [True, False, False]


def test_reachability_without_a_memory_and_unknown_names():
    with pytest.raises(UserError, match="memory") as caught:
        SCORES["reachability"].value(outputs(torch.zeros(3, 2)))
    assert "softmax" in caught.value.try_this
    with pytest.raises(UserError, match="did you mean softmax"):
        SCORES["softmx"]
    assert list(SCORES) == ["reachability", "softmax"]
