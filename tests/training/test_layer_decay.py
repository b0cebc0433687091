"""The rates of a backbone's layers, by the names of their parameters."""

from __future__ import annotations

import dataclasses

import pytest
import timm
import torch

import oltr.nn.backbone  # noqa: F401  (registers our own networks with timm)
from oltr.training.build import build_method, build_network
from oltr.training.frozen import freeze
from oltr.training.layer_decay import layer_factors
from oltr.training.optimizer import make_optimizer
from tests.helpers.tiny import tiny_config


def by_name(net, decay):
    factors = layer_factors(net, decay)
    return {name: factors[parameter] for name, parameter in net.named_parameters() if parameter in factors}


def test_stem_blocks_and_the_head_convolution_of_an_efficientnet():
    net = timm.create_model("tf_efficientnet_lite0", num_classes=0)
    expected = {}
    for name, _ in net.named_parameters():
        if name.startswith(("conv_stem", "bn1")):
            expected[name] = 0.6**7
        elif name.startswith("blocks."):
            expected[name] = 0.6 ** (6 - int(name.split(".")[1]))
        else:
            assert name.startswith(("conv_head", "bn2"))
            expected[name] = 1.0
    assert by_name(net, 0.6) == pytest.approx(expected)


def test_the_stages_of_a_resnet():
    factors = by_name(timm.create_model("resnet10_half", num_classes=0), 0.5)
    expected = {"conv1": 0.0625, "bn1": 0.0625, "layer1": 0.125, "layer2": 0.25, "layer3": 0.5, "layer4": 1}
    assert {name.split(".")[0]: factor for name, factor in factors.items()} == expected


def test_the_last_stage_is_the_top_where_what_follows_it_does_not_learn():
    net = timm.create_model("test_convnext", num_classes=0)
    net.head.norm.requires_grad_(False)  # as for any parameter that no logit depends on
    factors = by_name(net, 0.5)
    assert not any(name.startswith("head") for name in factors)
    assert {factor for name, factor in factors.items() if name.startswith("stages.3")} == {1.0}


def test_a_net_whose_layers_are_unknown_learns_at_one_rate_and_it_is_said():
    net = timm.create_model("resnet32_cifar", num_classes=0)
    with pytest.warns(UserWarning, match="no layers of CifarResNet"):
        assert layer_factors(net, 0.5) == {}


def test_in_the_optimiser_layers_of_the_backbone_alone_differ():
    config = tiny_config("oltr")
    network = build_network(config, build_method(config, torch.full((6,), 5)), 2)
    stage = dataclasses.replace(config.stage(2), layer_decay=0.5)
    freeze(network, stage, config.data.image_size)
    groups = make_optimizer(network, stage, fused=False).param_groups
    rates = {id(p): group["base_lr"] for group in groups for p in group["params"]}
    factors = layer_factors(network.backbone.net, 0.5)
    of_role = {"classifier": stage.classifier_lr, "memory": stage.memory_lr}
    for role, parameter in network.roles():
        if parameter.requires_grad:
            assert rates[id(parameter)] == of_role.get(role, stage.lr) * factors.get(parameter, 1.0)
    assert len([group for group in groups if group["role"] == "backbone"]) == 5
