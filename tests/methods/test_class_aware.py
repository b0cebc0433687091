"""Class-aware sampling: the plain model in all but the batches of its second stage."""

import torch

from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.nn.heads import LinearHead, Output
from oltr.recipes import resolve


def test_it_differs_from_the_plain_model_in_the_second_stages_batches_alone():
    plain, aware = (resolve("glyphs", name) for name in ("plain", "class-aware"))
    assert plain.stage1 == aware.stage1
    assert (plain.stage2.sampler, aware.stage2.sampler) == ("shuffle", "class-aware")
    method, other = (METHODS[name]({}, torch.tensor([9, 3]), 32) for name in ("class-aware", "plain"))
    assert method.first_stage == other.first_stage
    network = method.build_stage1(Backbone("resnet10_half", 32))
    assert type(network.head) is LinearHead and method.build_stage2(network) is network
    output, labels = Output(torch.randn(3, 2), torch.randn(3, 8)), torch.tensor([0, 1, 1])
    for stage in (1, 2):
        terms = [m.loss(stage, network, output, labels) for m in (method, other)]
        assert terms[0].keys() == terms[1].keys() == {"cross_entropy"}
        assert torch.equal(terms[0]["cross_entropy"], terms[1]["cross_entropy"])
