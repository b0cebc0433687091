import pytest
import torch
from torch import nn

from oltr.nn.scaled_head import ScaledHead

CLASSES, DIMS = 11, 4
LABELS = torch.tensor([0, 10, 5, 5, 7])


def example():
    torch.manual_seed(0)
    head = ScaledHead(nn.Linear(DIMS, CLASSES)).double()
    with torch.no_grad():
        head.scale.uniform_(0.5, 2)
    return head, torch.randn(5, DIMS, dtype=torch.float64, requires_grad=True)


def test_the_logits_equal_a_loop():
    head, direct = example()
    output = head(direct)
    weight, bias, scale = head.weight.tolist(), head.bias.tolist(), head.scale.tolist()
    for v, logits in zip(direct.tolist(), output.logits.tolist(), strict=True):
        for k in range(CLASSES):
            expected = scale[k] * (sum(w * x for w, x in zip(weight[k], v, strict=True)) + bias[k])
            assert logits[k] == pytest.approx(expected)
    assert output.direct_feature is direct


def test_it_starts_as_the_classifier_and_only_the_scales_learn():
    classifier = nn.Linear(DIMS, CLASSES)
    head, direct = ScaledHead(classifier), torch.randn(5, DIMS)
    torch.testing.assert_close(head(direct).logits, classifier(direct))
    assert [name for name, _ in head.named_parameters()] == ["scale"]
    assert set(head.state_dict()) == {"scale", "weight", "bias"}
    with torch.no_grad():
        classifier.weight.zero_()
    assert head.weight.abs().sum() > 0  # its own copy
