"""The paper's large-margin loss against a loop, whole and in blocks of classes."""

import math

import pytest
import torch

from oltr.losses.large_margin import large_margin_loss
from oltr.nn import blocks
from tests.helpers.created import Created

CLASSES, DIMS, BATCH = 6, 4, 8


def example(dtype=torch.float64):
    """Embeddings (B×D), labels in every block of classes, and centroids (K×D)."""
    random = torch.Generator().manual_seed(0)
    meta = torch.randn(BATCH, DIMS, generator=random, dtype=dtype)
    labels = torch.tensor([0, 1, 0, 2, 0, 2, 3, 5])
    centroids = torch.randn(CLASSES, DIMS, generator=random, dtype=dtype)
    return meta.requires_grad_(), labels, centroids.requires_grad_()


@pytest.fixture(params=[1, 4, 5, CLASSES])
def in_blocks(request, monkeypatch):
    """That many classes in a block."""
    monkeypatch.setattr(blocks, "LARGEST", request.param * BATCH)


def large_margin_loop(meta, labels, centroids, margin):
    """PAPER.md, row 5, the paper's form: mean of max(0, ‖v−c_y‖ − Σ_{i≠y}‖v−c_i‖ + margin)."""
    total = 0.0
    for v, y in zip(meta.tolist(), labels.tolist(), strict=True):
        distances = [
            math.sqrt(sum((a - b) ** 2 for a, b in zip(v, c, strict=True))) for c in centroids.tolist()
        ]
        others = sum(distance for i, distance in enumerate(distances) if i != y)
        total += max(0.0, distances[y] - others + margin)
    return total / len(labels)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("margin", [5.0, 12.0, 40.0])
def test_the_papers_large_margin_loss_equals_a_loop(margin, dtype, in_blocks):
    meta, labels, centroids = example(dtype=dtype)
    loss = large_margin_loss(meta, labels, centroids, margin=margin)
    expected = large_margin_loop(meta, labels, centroids, margin)
    assert loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_the_margins_tried_above_leave_the_hinge_closed_mixed_and_open():
    meta, labels, centroids = example()
    closed = [
        sum(large_margin_loop(meta[b : b + 1], labels[b : b + 1], centroids, m) == 0 for b in range(BATCH))
        for m in (5.0, 12.0, 40.0)
    ]
    assert closed[0] == BATCH > closed[1] > closed[2] == 0


def test_the_large_margin_gradient_is_that_of_the_formula(in_blocks):
    meta, labels, centroids = example()
    assert torch.autograd.gradcheck(
        lambda v, c: large_margin_loss(v, labels, c, margin=12.0), (meta, centroids), atol=1e-6
    )


def test_the_large_margin_loss_is_exact_beside_a_far_centroid_and_finite_upon_it(in_blocks):
    _, labels, _ = example()
    torch.manual_seed(0)
    centroids = torch.randn(CLASSES, DIMS) * 100
    meta = (centroids[labels] + 1e-3).requires_grad_()
    loss = large_margin_loss(meta, labels, centroids, margin=2000.0)
    assert loss.item() == pytest.approx(large_margin_loop(meta, labels, centroids, 2000.0), rel=1e-5)
    upon = centroids[labels].clone().requires_grad_()
    large_margin_loss(upon, labels, centroids, margin=2000.0).backward()
    assert torch.isfinite(upon.grad).all()


def test_nothing_larger_than_a_block_is_made_but_gradients(monkeypatch):
    batch, classes, dims, block = 8, 1000, 16, 70
    monkeypatch.setattr(blocks, "LARGEST", block * dims)
    meta, centroids = torch.randn(batch, dims), torch.randn(classes, dims)
    meta.requires_grad_(), centroids.requires_grad_()
    labels = torch.randint(0, classes, (batch,))
    with Created() as created:
        large_margin_loss(meta, labels, centroids, margin=1e6).backward()
    # That of the own distances, that of the others, and their sum.
    assert created.above(block * dims) == [(classes, dims)] * 3
