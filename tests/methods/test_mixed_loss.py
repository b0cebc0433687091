"""The loss of mixed images: exactly the weighted sum of both labels', or that of a label drawn by weight."""

from __future__ import annotations

import math

import pytest
import torch

from oltr.losses import MixedLabels
from oltr.methods import METHODS, Method
from oltr.nn import blocks
from oltr.nn.backbone import Backbone
from oltr.recipes import resolve

COUNTS = torch.tensor([40, 20, 10, 5, 2])
FIRST, SECOND = torch.tensor([0, 1, 2, 3, 4, 0]), torch.tensor([3, 1, 0, 4, 4, 2])
SHARE = torch.tensor([0.3, 0.5, 1.0, 0.0, 0.7, 0.9])
EXACT = [
    "plain",
    "class-aware",
    "crt",
    "lws",
    "tau-norm",
    "balanced-softmax",
    "logit-adjusted",
    "experts",
    "oltr2",
]


def mixed(drawn=FIRST, share=SHARE):
    return MixedLabels(FIRST, SECOND, share, drawn)


def made(name, stage=1):
    torch.manual_seed(0)
    method = METHODS[name](resolve("glyphs", name).settings, COUNTS, 32)
    network = method.build_stage1(Backbone("resnet10_half", 32))
    network = method.build_stage2(network) if stage == 2 else network
    method.on_stage_start(stage, network, lambda: torch.randn(5, network.direct_feature.dims))
    images = torch.randn(6, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    return method, network.eval(), network(images)


def minus_log(logits, label):
    return math.log(sum(math.exp(z) for z in logits)) - logits[label]


@pytest.mark.parametrize("name", ["plain", "balanced-softmax"])
def test_the_soft_loss_is_the_explicit_sum(name):
    method, network, output = made(name)
    offset = [math.log(n) if name == "balanced-softmax" else 0.0 for n in COUNTS.tolist()]
    expected = 0.0
    for row, a, b, share in zip(output.logits.tolist(), FIRST, SECOND, SHARE.tolist(), strict=True):
        logits = [z + more for z, more in zip(row, offset, strict=True)]
        expected += (share * minus_log(logits, a) + (1 - share) * minus_log(logits, b)) / 6
    found = method.mixed_loss(1, network, output, mixed())
    assert found.keys() == {"cross_entropy"}
    assert found["cross_entropy"].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_loss_is_a_weighted_sum_of_the_losses_of_single_images(name):
    method, network, output = made(name)
    assert type(method).mixed_loss is not Method.drawn_loss
    expected = 0.0
    for row in range(6):
        one = output.rows(slice(row, row + 1))
        for labels, weight in ((FIRST, SHARE[row]), (SECOND, 1 - SHARE[row])):
            hard = method.loss(1, network, one, labels[row : row + 1])["cross_entropy"]
            expected += (weight * hard).item() / 6
    found = method.mixed_loss(1, network, output, mixed())
    assert found["cross_entropy"].item() == pytest.approx(expected, rel=1e-5)
    assert found.keys() == method.loss(1, network, output, FIRST).keys()


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("stage", [1, 2])
def test_images_that_are_not_mixed_have_the_ordinary_loss(name, stage):
    method, network, output = made(name, stage)
    found = []
    for labels in (FIRST, mixed(share=torch.ones(6))):
        torch.manual_seed(0)  # some draw episodes
        loss = method.loss if labels is FIRST else method.mixed_loss
        found.append(loss(stage, network, output, labels))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("name", ["focal", "plain"])
def test_a_drawn_label_gives_the_soft_loss_on_average(name):
    method, network, output = made(name)
    random = torch.Generator().manual_seed(0)
    total, draws = 0.0, 4000
    with torch.no_grad():
        for _ in range(draws):
            drawn = torch.where(torch.rand(6, generator=random) < SHARE, FIRST, SECOND)
            terms = method.drawn_loss(1, network, output, mixed(drawn))
            total += terms["cross_entropy"].item() / draws
    expected = 0.0
    for row in range(6):
        one = output.rows(slice(row, row + 1))
        losses = [
            method.loss(1, network, one, each[row : row + 1])["cross_entropy"] for each in (FIRST, SECOND)
        ]
        expected += (SHARE[row] * losses[0] + (1 - SHARE[row]) * losses[1]).item() / 6
    assert total == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", ["plain", "oltr"])
def test_with_very_many_classes_each_image_has_the_loss_of_the_blocks(name, monkeypatch):
    _, network, _ = made(name, 2)
    direct = torch.randn(6, network.direct_feature.dims, generator=torch.Generator().manual_seed(3))

    def gradients():
        network.head.train()
        network.zero_grad()
        output = network.head(direct)
        loss = mixed().mean(lambda hard: network.head.cross_entropy(output, hard, "none"))
        loss.backward()
        kept = [p.grad.clone() for p in network.head.parameters() if p.grad is not None]
        return output.logits_or_none, [loss.detach(), *kept]

    logits, whole = gradients()
    monkeypatch.setattr(blocks, "LARGEST", 8)
    none, in_blocks = gradients()
    assert logits is not None and none is None
    torch.testing.assert_close(in_blocks, whole, rtol=1e-4, atol=1e-6)


def test_who_writes_a_loss_anew_has_drawn_labels_unless_it_says_how_to_mix():
    class Doubled(METHODS["balanced-softmax"]):
        def loss(self, stage, network, output, labels):
            return {name: 2 * term for name, term in super().loss(stage, network, output, labels).items()}

    class Both(Doubled):
        def mixed_loss(self, stage, network, output, labels):
            return {}

    class Further(Both):
        pass

    assert Doubled.mixed_loss is Method.drawn_loss
    assert Both.mixed_loss is Further.mixed_loss is not Method.drawn_loss
    drawn = {name for name in METHODS if METHODS[name].mixed_loss is Method.drawn_loss}
    assert drawn == set(METHODS) - set(EXACT)
