import pytest
import torch
from torch.nn import functional as F

from oltr.errors import UserError
from oltr.nn import blocks
from oltr.nn.classifier import CosineClassifier
from oltr.nn.heads import LinearHead, MetaEmbeddingHead, Output
from oltr.nn.meta_embedding import MetaEmbedding

CLASSES, DIMS = 11, 4
LABELS = torch.tensor([0, 10, 5, 5, 7])


def linear():
    return LinearHead(DIMS, CLASSES)


def released(form="softmax", squash="released"):
    meta = MetaEmbedding(
        CLASSES, DIMS, memory=True, selector=True, reachability=True,
        coefficients=form, reachability_scale=10.0, constant_centroids=form == "softmax",
    )  # fmt: skip
    meta.memory.start_from(torch.randn(CLASSES, DIMS))
    return MetaEmbeddingHead(meta, CosineClassifier(DIMS, CLASSES, 16.0, squash))


def paper():
    return released("raw", "paper")


HEADS = pytest.mark.parametrize("make", [linear, released, paper])


def example(make):
    torch.manual_seed(0)
    return make().double(), torch.randn(5, DIMS, dtype=torch.float64, requires_grad=True)


@HEADS
def test_with_few_classes_there_are_logits_and_their_cross_entropy(make):
    head, direct = example(make)
    output = head.train()(direct)
    assert output.logits.shape == (5, CLASSES)
    expected = F.cross_entropy(output.logits, LABELS)
    assert head.cross_entropy(output, LABELS).item() == pytest.approx(expected.item(), rel=1e-5)


@HEADS
@pytest.mark.parametrize("size", [1, 4, 10])  # classes in a block
def test_with_too_many_classes_there_is_the_same_cross_entropy_without_logits(make, size, monkeypatch):
    head, direct = example(make)
    inputs = [
        direct,
        *(p for name, p in head.named_parameters() if make is not released or "centroids" not in name),
    ]
    whole = F.cross_entropy(head.train()(direct).logits, LABELS)
    expected = torch.autograd.grad(whole, inputs)
    monkeypatch.setattr(blocks, "LARGEST", size * 5)
    output = head(direct)
    assert output.logits_or_none is None
    found = head.cross_entropy(output, LABELS)
    torch.testing.assert_close(found, whole)
    for a, b in zip(torch.autograd.grad(found, inputs), expected, strict=True):
        torch.testing.assert_close(a, b)


@HEADS
def test_in_evaluation_there_are_always_logits(make, monkeypatch):
    head, direct = example(make)
    expected = head.eval()(direct)
    monkeypatch.setattr(blocks, "LARGEST", 4)
    found = head(direct)
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b)


def test_a_loss_that_needs_all_logits_is_told_why_there_are_none():
    with pytest.raises(
        UserError, match=r"needs all logits.*\n.*too many classes .* with 5 images.*\n.*batch_size"
    ):
        Output(None, torch.zeros(5, DIMS)).logits  # noqa: B018
