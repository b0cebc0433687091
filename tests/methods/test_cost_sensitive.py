"""The cost-sensitive method: cross-entropy weighted by the inverse of the class's frequency."""

import math

import pytest
import torch

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.nn.heads import Output
from oltr.recipes import resolve

COUNTS = [50, 9, 3]


@pytest.mark.parametrize("stage", [1, 2])
def test_the_loss_equals_a_loop(stage):
    method = METHODS["cost-sensitive"]({}, torch.tensor(COUNTS), image_size=32)
    network = method.build_stage2(method.build_stage1(Backbone("resnet10_half", 32)))
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 0])
    terms = method.loss(stage, network, Output(logits, torch.randn(4, 8)), labels)
    slow = sum_of_weights = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        weight = 1 / COUNTS[label] if stage == 2 else 1
        slow += weight * (math.log(sum(math.exp(z) for z in row)) - row[label])
        sum_of_weights += weight
    assert terms.keys() == {"cross_entropy"}
    assert terms["cross_entropy"].item() == pytest.approx(slow / sum_of_weights, rel=1e-5)


def test_it_sees_the_training_set_as_it_is_and_shares_the_plain_stage():
    config = resolve("glyphs", "cost-sensitive")
    assert config.stage1.sampler == config.stage2.sampler == "shuffle"
    method = METHODS["cost-sensitive"]({}, torch.tensor(COUNTS), image_size=32)
    plain = METHODS["plain"]({}, torch.tensor(COUNTS), image_size=32)
    assert method.first_stage == plain.first_stage
    nets = [each.build_stage1(Backbone("resnet10_half", 32)).state_dict() for each in (method, plain)]
    assert nets[0].keys() == nets[1].keys()
