"""Losses that a compiler takes in one graph: nothing in them waits for a number of the batch."""

import pytest
import torch

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.recipes import resolve

COUNTS = torch.tensor([40, 20, 10, 5, 2])
LABELS = torch.tensor([0, 0, 1, 2, 3, 3, 4, 3])


@pytest.mark.parametrize(
    "name", ["balanced-softmax", "cost-sensitive", "focal", "ldam-drw", "lifted", "range"]
)
def test_a_compiler_takes_the_head_and_its_loss_in_one_graph(name):
    torch.manual_seed(0)
    method = METHODS[name](resolve("glyphs", name).settings, COUNTS, image_size=32)
    network = method.build_stage2(method.build_stage1(Backbone("resnet10_half", 32))).train()
    features = torch.rand(8, 256, requires_grad=True)

    def total(features):
        return sum(method.loss(2, network, network.head(features), LABELS).values())

    found = []
    for function in (total, torch.compile(total, fullgraph=True, backend="aot_eager")):
        loss = function(features)
        inputs = [features, *network.head.parameters()]
        found.append([loss.detach(), *torch.autograd.grad(loss, inputs)])
    for expected, same in zip(*found, strict=True):
        torch.testing.assert_close(same, expected, rtol=1e-4, atol=1e-6)
