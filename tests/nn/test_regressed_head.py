import math

import pytest
import torch
from torch import nn

from oltr.nn.regressed_head import RegressedHead
from oltr.nn.regressors import RecursiveRegressor, Regressor

CLASSES, DIMS, BATCH = 5, 3, 4
COMMON = torch.tensor([True, False, True, True, False])
COUNTS = torch.tensor([300, 9, 200, 150, 3])


def example(common=COMMON, regressor=None):
    torch.manual_seed(0)
    classifier = nn.Linear(DIMS, CLASSES)
    head = RegressedHead(classifier, common, COUNTS, regressor or Regressor(DIMS + 1))
    head.start_from(torch.randn(CLASSES, DIMS) + 1)
    return head.double(), classifier.double(), torch.randn(BATCH, DIMS, dtype=torch.float64) + 1


def few_shot(head, classifier, mean):
    """[(m − μ) / ‖m − μ‖; mean over common classes of (b + w·μ) / ρ] for one mean."""
    middle = head.class_means.mean(dim=0).tolist()
    rows = [(classifier.weight[k].tolist(), classifier.bias[k].item()) for k in (0, 2, 3)]
    typical = sum(math.sqrt(sum(x * x for x in w)) for w, _ in rows) / 3
    offset = sum(b + sum(x * m for x, m in zip(w, middle, strict=True)) for w, b in rows) / 3
    away = [x - m for x, m in zip(mean, middle, strict=True)]
    return [x / math.sqrt(sum(y * y for y in away)) for x in away] + [offset / typical], typical


def test_common_classes_keep_their_logits_and_the_others_have_regressed_rows():
    head, classifier, direct = example()
    expected = classifier(direct)
    middle = head.class_means.mean(dim=0)
    for k in (1, 4):
        row, typical = few_shot(head, classifier, head.class_means[k].tolist())
        made = head.regressor(torch.tensor([row]).double(), COUNTS[k : k + 1])[0]
        for b in range(BATCH):
            expected[b, k] = typical * (sum(made[:-1] * (direct[b] - middle)) + made[-1])
    torch.testing.assert_close(head.train()(direct).logits, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(head.eval()(direct).logits, expected, rtol=1e-5, atol=1e-6)


def test_where_all_classes_are_common_the_logits_are_those_of_the_classifier():
    head, classifier, direct = example(torch.ones(CLASSES, dtype=torch.bool))
    torch.testing.assert_close(head(direct).logits, classifier(direct), rtol=1e-5, atol=1e-6)


def test_starting_twice_is_starting_once():
    head, _, direct = example()
    expected = head(direct).logits
    means = head.class_means.clone()
    head.start_from(torch.randn(CLASSES, DIMS))
    head.start_from(means)
    torch.testing.assert_close(head(direct).logits, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [Regressor, lambda dims: RecursiveRegressor(dims, 3)])
def test_only_the_regressor_learns(make):
    head, _, direct = example(regressor=make(DIMS + 1))
    head(direct).logits.square().sum().backward()
    assert all(name.startswith("regressor.") for name, _ in head.named_parameters())
    assert sum(parameter.grad.abs().sum() for parameter in head.parameters()) > 0


def test_autocast_changes_nothing():
    head, _, direct = example()
    head, direct = head.float(), direct.float()
    expected = head(direct).logits
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(head(direct).logits, expected)


def test_all_that_evaluation_needs_is_saved():
    head, _, direct = example()
    again = RegressedHead(nn.Linear(DIMS, CLASSES), COMMON, COUNTS, Regressor(DIMS + 1)).double()
    again.load_state_dict(head.state_dict())
    assert torch.equal(again(direct).logits, head(direct).logits)
