"""The DenseNet-BC of ODIN's tables, against the same network written out with functions."""

from __future__ import annotations

import math

import pytest
import timm
import torch
from torch import nn
from torch.nn import functional as F

from oltr.nn.backbone import Backbone, backbone_card

NAME = "densenet100_cifar"


def written_out(state, images, statistics):
    """Logits of the network from its weights alone: conv, three blocks of 16 layers, norm, pool, linear."""

    def norm_relu(x, name):
        weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
        if statistics == "batch":
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
        else:
            mean, var = state[f"{name}.running_mean"], state[f"{name}.running_var"]
        shape = (1, -1, 1, 1)
        x = (x - mean.view(shape)) / (var.view(shape) + 1e-5).sqrt()
        return (x * weight.view(shape) + bias.view(shape)).clamp(min=0)

    x = F.conv2d(images, state["features.conv0.weight"], padding=1)
    for block in (1, 2, 3):
        for layer in range(1, 17):
            at = f"features.denseblock{block}.denselayer{layer}"
            new = F.conv2d(norm_relu(x, f"{at}.norm1"), state[f"{at}.conv1.weight"])
            new = F.conv2d(norm_relu(new, f"{at}.norm2"), state[f"{at}.conv2.weight"], padding=1)
            x = torch.cat([x, new], dim=1)
        if block < 3:
            at = f"features.transition{block}"
            x = F.avg_pool2d(F.conv2d(norm_relu(x, f"{at}.norm"), state[f"{at}.conv.weight"]), 2)
    x = norm_relu(x, "features.norm5").mean((2, 3))
    return x @ state["classifier.weight"].T + state["classifier.bias"]


@pytest.mark.parametrize("statistics", ["batch", "kept"])
def test_it_is_the_network_written_out(statistics):
    torch.manual_seed(0)
    net = timm.create_model(NAME, num_classes=7).double().train(statistics == "batch")
    for name, value in net.state_dict().items():
        if "norm" in name and value.is_floating_point():  # else a forgotten norm could not be told
            value.copy_(torch.rand_like(value) + 0.5)
    images = torch.randn(3, 3, 32, 32, dtype=torch.float64)
    state = {name: value.clone() for name, value in net.state_dict().items()}
    with torch.no_grad():
        torch.testing.assert_close(net(images), written_out(state, images, statistics))


@pytest.mark.parametrize(("classes", "weights"), [(0, 765_732), (10, 769_162), (100, 800_032)])
def test_it_has_the_usual_number_of_weights(classes, weights):
    net = timm.create_model(NAME, num_classes=classes)
    assert sum(p.numel() for p in net.parameters()) == weights
    convolutions = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) == 99  # and the classifier makes 100


def test_convolutions_start_as_its_authors_start_them():
    torch.manual_seed(0)
    net = timm.create_model(NAME, num_classes=0)
    for name, wide in (("denselayer16.conv1", 48), ("denselayer16.conv2", 9 * 12)):
        weight = net.get_submodule(f"features.denseblock3.{name}").weight
        assert weight.std().item() == pytest.approx(math.sqrt(2 / wide), rel=0.05)


def test_as_a_backbone():
    backbone = Backbone(NAME, 32)
    assert (backbone.channels, backbone.map_size) == (342, (8, 8))
    assert backbone.stages == ["features.denseblock1", "features.denseblock2", "features.norm5"]
    maps = []
    for stage in backbone.stages:
        backbone.net.get_submodule(stage).register_forward_hook(lambda _, __, made: maps.append(made.shape))
    backbone.eval()(torch.zeros(1, 3, 32, 32))
    told = [(entry["num_chs"], 32 // entry["reduction"]) for entry in backbone.net.feature_info]
    assert [tuple(made[1:3]) for made in maps] == told == [(216, 32), (300, 16), (342, 8)]
    assert backbone_card(NAME) is None  # nothing pretrained
