import math

import pytest
import torch

from oltr.nn.classifier import CosineClassifier, squash


def norm(v):
    return math.sqrt(sum(x * x for x in v))


def squash_loop(v, form):
    """PAPER: (‖v‖²/(1+‖v‖²)) · v/‖v‖; released: v/(1+‖v‖)."""
    length = norm(v)
    if form == "released":
        return [x / (1 + length) for x in v]
    return [length**2 / (1 + length**2) * x / length for x in v]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", [16.0, 1.0])
@pytest.mark.parametrize("form", ["released", "paper"])
def test_logits_equal_a_loop(form, scale, dtype):
    torch.manual_seed(0)
    classifier = CosineClassifier(5, 3, scale, form).to(dtype)
    v = torch.randn(4, 5, dtype=dtype) * torch.tensor([[0.01], [1.0], [5.0], [300.0]], dtype=dtype)
    expected = [
        [
            scale * sum(a * b / norm(w) for a, b in zip(squash_loop(x, form), w, strict=True))
            for w in classifier.weight.tolist()
        ]
        for x in v.tolist()
    ]
    torch.testing.assert_close(
        classifier(v).double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("form", ["released", "paper"])
def test_squashed_vectors_keep_their_direction_and_grow_towards_length_one(form):
    direction = torch.tensor([[0.6, 0.8]])
    lengths = [float(squash(direction * length, form).norm()) for length in (0.1, 1.0, 10.0, 1000.0)]
    assert lengths == sorted(lengths) and 0.99 < lengths[-1] < 1
    torch.testing.assert_close(torch.nn.functional.normalize(squash(direction * 3, form)), direction)


@pytest.mark.parametrize("form", ["released", "paper"])
def test_a_zero_vector_gives_zero_logits_and_a_finite_gradient(form):
    classifier = CosineClassifier(5, 3, 16.0, form)
    v = torch.zeros(2, 5, requires_grad=True)
    logits = classifier(v)
    assert logits.tolist() == [[0.0] * 3] * 2
    logits.sum().backward()
    assert torch.isfinite(v.grad).all() and torch.isfinite(classifier.weight.grad).all()


def test_the_length_of_a_weight_does_not_matter_and_there_is_no_bias():
    torch.manual_seed(0)
    classifier, v = CosineClassifier(5, 3, 16.0, "released"), torch.randn(4, 5)
    before = classifier(v)
    with torch.no_grad():
        classifier.weight.mul_(torch.tensor([[0.1], [2.0], [50.0]]))
    torch.testing.assert_close(classifier(v), before, rtol=1e-5, atol=1e-6)
    assert [name for name, _ in classifier.named_parameters()] == ["weight"]


def test_without_a_scale_the_largest_softmax_at_100_classes_is_seven_percent():
    # PAPER.md row 2: logits in (−1, 1) cannot pass a threshold of 0.1.
    logits = torch.full((100,), -1 / 99)
    logits[0] = 1.0
    assert logits.softmax(0).max() < 0.1
    classifier = CosineClassifier(5, 100, 1.0, "paper")
    assert classifier(torch.randn(50, 5) * 1e3).abs().max() <= 1 + 1e-6
