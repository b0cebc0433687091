"""The lifted structured loss against a loop and another library's, and where there is nothing to pair."""

import math

import pytest
import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import LiftedStructureLoss
from torch.nn import functional as F

from oltr.losses.lifted import lifted_structure_loss
from tests.helpers.created import Created

LABELS = torch.tensor([0, 1, 0, 2, 0, 2, 3, 1])


def example(dtype=torch.float64, dims=5):
    random = torch.Generator().manual_seed(0)
    return torch.randn(len(LABELS), dims, generator=random, dtype=torch.float64).to(dtype).requires_grad_()


def hinges(features, labels, margin):
    """J_ij of every pair, as Song et al. 2016 print it."""
    x, y = features.tolist(), labels.tolist()
    images = range(len(y))
    d = [[math.dist(a, b) for b in x] for a in x]
    found = []
    for i in images:
        for j in images:
            if i < j and y[i] == y[j]:
                inner = sum(math.exp(margin - d[i][k]) for k in images if y[k] != y[i])
                inner += sum(math.exp(margin - d[j][k]) for k in images if y[k] != y[j])
                found.append(math.log(inner) + d[i][j])
    return found


def lifted_loop(features, labels, margin):
    found = hinges(features, labels, margin)
    return sum(max(0.0, j) ** 2 for j in found) / (2 * len(found))


@pytest.mark.parametrize(("margin", "opened"), [(1.0, 5), (-3.0, 3), (-6.0, 0)])
def test_the_lifted_loss_equals_a_loop(margin, opened):
    features = example()
    assert sum(j > 0 for j in hinges(features, LABELS, margin)) == opened
    loss = lifted_structure_loss(features, LABELS, margin=margin)
    assert loss.item() == pytest.approx(lifted_loop(features, LABELS, margin), abs=1e-9)
    assert torch.autograd.gradcheck(lambda x: lifted_structure_loss(x, LABELS, margin=margin), (features,))


@pytest.mark.parametrize("margin", [1.0, -3.0])
def test_the_lifted_loss_and_its_gradient_equal_pytorch_metric_learnings(margin):
    oracle = LiftedStructureLoss(neg_margin=margin, distance=LpDistance(normalize_embeddings=False))
    features = example()
    loss, expected = lifted_structure_loss(features, LABELS, margin=margin), oracle(features, LABELS)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-9)
    gradients = [torch.autograd.grad(value, features)[0] for value in (loss, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-9)


def test_the_lifted_loss_is_as_exact_in_float32_and_under_autocast():
    features = F.normalize(example(torch.float32, dims=64), dim=1)
    with torch.autocast("cpu", torch.bfloat16):
        loss = lifted_structure_loss(features, LABELS, margin=1.0)
    assert loss.item() == pytest.approx(lifted_loop(features, LABELS, 1.0), rel=1e-5)


@pytest.mark.parametrize(
    "labels", [torch.arange(8), torch.zeros(8, dtype=torch.long)], ids=["pairs", "others"]
)
def test_without_pairs_or_without_others_there_is_no_loss_and_no_gradient(labels):
    features = example()
    loss = lifted_structure_loss(features, labels, margin=1.0)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(features.grad, torch.zeros_like(features))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_same_image_twice_gives_a_finite_gradient(dtype):
    features = F.normalize(example(dtype).detach()[[0, 1, 0, 3, 4, 3, 6, 7]], dim=1).requires_grad_()
    loss = lifted_structure_loss(features, LABELS, margin=1.0)
    loss.backward()
    assert loss.item() == pytest.approx(lifted_loop(features, LABELS, 1.0), rel=1e-3)
    assert features.grad.abs().max() < 10


def test_nothing_larger_than_batch_by_batch_is_made():
    batch = 32
    features = torch.randn(batch, 16, requires_grad=True)
    with Created() as created:
        lifted_structure_loss(features, torch.arange(batch) // 4, margin=1.0).backward()
    assert not created.above(batch * batch)
