"""The logit-adjusted method: by steps as balanced softmax, on frozen features the fitted head."""

import pytest
import torch

from oltr.methods import METHODS
from oltr.methods.logit_adjusted import NEVER
from oltr.nn import Backbone, MultilevelBackbone, fit_linear

COUNTS = [9, 4, 2]


def make(counts=COUNTS, **settings):
    return METHODS["logit-adjusted"](settings, torch.tensor(counts), image_size=32)


def frozen(method):
    torch.manual_seed(0)
    return method.build_stage1(MultilevelBackbone(Backbone("resnet10_half", 32)))


def data(dims, counts=COUNTS):
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    return torch.randn(len(labels), dims, generator=torch.Generator().manual_seed(1)), labels


def test_the_head_is_the_minimum_under_tau_times_the_log_frequencies():
    method = make(tau=0.7, decay=0.02)
    network = frozen(method)
    features, labels = data(network.backbone.channels)
    loss = method.fit(network, features, labels)
    prior = 0.7 * (torch.tensor(COUNTS) / sum(COUNTS)).log()
    weight, bias, expected = fit_linear(features, labels, prior, decay=0.02)
    assert loss == pytest.approx(expected)
    assert torch.equal(network.head.classifier.weight, weight) and torch.equal(
        network.head.classifier.bias, bias
    )


def test_a_class_without_training_images_is_never_the_answer():
    method = make([5, 0, 3])
    network = frozen(method)
    features = torch.randn(8, network.backbone.channels)
    method.fit(network, features, torch.tensor([0] * 5 + [2] * 3))
    assert network.head.classifier.bias[1] == NEVER
    assert (network.head(torch.randn(50, network.backbone.channels)).logits.argmax(dim=1) != 1).all()


def test_an_unfrozen_backbone_learns_by_steps():
    method = make()
    network = method.build_stage1(Backbone("resnet10_half", 32))
    features, labels = data(network.backbone.channels)
    assert method.fit(network, features, labels) is None
    second = method.build_stage2(network)
    assert isinstance(second.backbone, MultilevelBackbone) and second.backbone.net is network.backbone.net
