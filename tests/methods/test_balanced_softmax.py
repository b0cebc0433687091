"""The balanced-softmax method: the classes' frequencies are in its loss and not in its logits."""

import math

import pytest
import torch
from torch.nn import functional as F

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.nn.heads import Output
from oltr.recipes import resolve

COUNTS = [50, 9, 3]


def make():
    method = METHODS["balanced-softmax"]({}, torch.tensor(COUNTS), image_size=32)
    return method, method.build_stage1(Backbone("resnet10_half", 32))


@pytest.mark.parametrize("stage", [1, 2])
def test_the_loss_equals_a_loop(stage):
    method, network = make()
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 0])
    terms = method.loss(stage, network, Output(logits, torch.randn(4, 8)), labels)
    slow = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        powers = [n * math.exp(z) for n, z in zip(COUNTS, row, strict=True)]
        slow -= math.log(powers[label] / sum(powers)) / 4
    assert terms.keys() == {"cross_entropy"}
    assert terms["cross_entropy"].item() == pytest.approx(slow, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_the_logits_are_bare(training):
    _, network = make()
    output = network.train(training)(torch.randn(2, 3, 32, 32))
    classifier = network.head.classifier
    expected = F.linear(output.direct_feature, classifier.weight, classifier.bias)
    torch.testing.assert_close(output.logits, expected)


def test_it_sees_the_training_set_as_it_is_and_shares_no_stage():
    config = resolve("glyphs", "balanced-softmax")
    assert config.stage1.sampler == config.stage2.sampler == "shuffle"
    assert METHODS["balanced-softmax"].first_stage not in {
        METHODS[name].first_stage for name in METHODS if name != "balanced-softmax"
    }
