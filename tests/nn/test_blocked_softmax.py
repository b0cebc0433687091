"""Both blocked functions against the whole matrix and against loops over single numbers."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.nn import blocks
from oltr.nn.blocked_softmax import blocked_cross_entropy, blocked_memory_feature
from tests.helpers.created import Created

BATCH, CLASSES, DIMS = 6, 12, 4
BLOCKS = [1, 3, 5, 11, 12]  # classes in a block: those that divide 12 and those that do not
LABELS = torch.tensor([0, 11, 5, 5, 7, 2])  # in every block of 3 and of 5


@pytest.fixture(params=BLOCKS)
def in_blocks(request, monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", request.param * BATCH)
    assert len(blocks.class_blocks(BATCH, CLASSES, DIMS)) == math.ceil(CLASSES / request.param)


def example(dtype=torch.float64):
    """v (B×D), W (K×D), b (K), M (K×D), some scores far above others."""
    random = torch.Generator().manual_seed(0)
    shapes = [(BATCH, DIMS), (CLASSES, DIMS), (CLASSES,), (CLASSES, DIMS)]
    return [(3 * torch.randn(*s, generator=random, dtype=dtype)).requires_grad_() for s in shapes]


def gradients(value, inputs):
    """Of the value weighed with fixed numbers, so that no sum of gradients cancels."""
    weights = torch.linspace(0.1, 1, value.numel(), dtype=value.dtype).reshape(value.shape)
    return torch.autograd.grad((value * weights).sum(), inputs)


def whole_cross_entropy(v, weight, bias):
    scores = v @ F.normalize(weight).T if bias is None else F.linear(v, weight, bias)
    return F.cross_entropy(scores, LABELS)


def cross_entropy_loop(v, weight, bias):
    total = 0.0
    for x, label in zip(v.tolist(), LABELS.tolist(), strict=True):
        scores = [sum(a * b for a, b in zip(x, w, strict=True)) for w in weight.tolist()]
        if bias is None:
            scores = [
                s / math.sqrt(sum(a * a for a in w)) for s, w in zip(scores, weight.tolist(), strict=True)
            ]
        else:
            scores = [s + b for s, b in zip(scores, bias.tolist(), strict=True)]
        total -= math.log(math.exp(scores[label]) / sum(math.exp(s) for s in scores))
    return total / len(LABELS)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("biased", [True, False])
def test_cross_entropy_and_its_gradients_are_those_of_all_logits(biased, dtype, in_blocks):
    v, weight, bias, _ = example(dtype)
    inputs = (v, weight, bias) if biased else (v, weight)
    bias = bias if biased else None
    found, expected = blocked_cross_entropy(v, weight, LABELS, bias), whole_cross_entropy(v, weight, bias)
    assert found.item() == pytest.approx(cross_entropy_loop(v, weight, bias), rel=1e-5)
    torch.testing.assert_close(found, expected)
    for a, b in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("biased", [True, False])
def test_the_gradient_of_cross_entropy_is_its_derivative(biased, monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", 5 * BATCH)
    v, weight, bias, _ = example()
    inputs = (v, weight, bias) if biased else (v, weight)
    assert torch.autograd.gradcheck(lambda v, w, *b: blocked_cross_entropy(v, w, LABELS, *b), inputs)


def whole_memory_feature(v, weight, bias, centroids):
    return F.linear(v, weight, bias).softmax(dim=1) @ centroids


def memory_feature_loop(v, weight, bias, centroids):
    features = []
    for x in v.tolist():
        scores = [
            sum(a * b for a, b in zip(x, w, strict=True)) + c
            for w, c in zip(weight.tolist(), bias.tolist(), strict=True)
        ]
        powers = [math.exp(s) for s in scores]
        features.append(
            [
                sum(p / sum(powers) * c[d] for p, c in zip(powers, centroids.tolist(), strict=True))
                for d in range(DIMS)
            ]
        )
    return torch.tensor(features, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("constant", [True, False])
def test_the_memory_feature_and_its_gradients_are_those_of_all_coefficients(constant, dtype, in_blocks):
    v, weight, bias, centroids = example(dtype)
    inputs = (v, weight, bias) if constant else (v, weight, bias, centroids)
    centroids = centroids.detach() if constant else centroids
    found = blocked_memory_feature(v, weight, bias, centroids)
    expected = whole_memory_feature(v, weight, bias, centroids)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
    torch.testing.assert_close(
        found.double(), memory_feature_loop(v, weight, bias, centroids), rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(found, expected, **tolerance)
    for a, b in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(a, b, **({"rtol": 1e-5, "atol": 2e-5} if dtype == torch.float32 else {}))


def test_the_gradient_of_the_memory_feature_is_its_derivative(monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", 5 * BATCH)
    assert torch.autograd.gradcheck(blocked_memory_feature, example())


@pytest.mark.parametrize("shift", [-1000.0, 1000.0])
def test_scores_whose_exponentials_overflow_are_no_harm(shift, monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", 5 * BATCH)
    v, weight, bias, centroids = example(torch.float32)
    far = bias.detach() + shift * (torch.arange(CLASSES) < 6)  # one block far from another
    torch.testing.assert_close(
        blocked_cross_entropy(v, weight, LABELS, far), whole_cross_entropy(v, weight, far)
    )
    torch.testing.assert_close(
        blocked_memory_feature(v, weight, far, centroids), whole_memory_feature(v, weight, far, centroids)
    )


def test_both_work_in_float32_under_autocast_backward_too(monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", 5 * BATCH)
    found = []
    for low in (False, True):
        v, weight, bias, centroids = example(torch.float32)
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            feature = blocked_memory_feature(v, weight, bias, centroids)
            loss = blocked_cross_entropy(feature, weight, LABELS)
            loss.backward()
        found.append([loss, feature, *(i.grad for i in (v, weight, bias, centroids))])
    for exact, low in zip(*found, strict=True):
        assert torch.equal(exact, low)


def test_features_in_bfloat16_are_taken(monkeypatch):
    monkeypatch.setattr(blocks, "LARGEST", 5 * BATCH)
    v, weight, bias, _ = example(torch.float32)
    low = v.detach().bfloat16().requires_grad_()
    loss = blocked_cross_entropy(low, weight, LABELS, bias)
    loss.backward()
    assert loss.dtype == torch.float32 and low.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("biased", [True, False])
def test_nothing_larger_than_a_block_is_made_but_the_gradients(biased, monkeypatch):
    batch, classes, dims, block = 8, 1000, 16, 70
    monkeypatch.setattr(blocks, "LARGEST", block * dims)
    v, labels = torch.randn(batch, dims), torch.randint(0, classes, (batch,))
    hallucinator, bias, centroids, classifier = (
        torch.randn(classes, *rest).requires_grad_() for rest in ([dims], [], [dims], [dims])
    )
    with Created() as created:
        feature = blocked_memory_feature(v, hallucinator, bias, centroids)
        blocked_cross_entropy(feature, classifier, labels, bias if biased else None).backward()
    assert created.above(block * dims) == [(classes, dims)] * 3
