"""Features of several levels: the formula, descriptors in the place of images, networks of every kind."""

import pytest
import torch
from torch.nn import functional as F

from oltr.nn import Backbone, MultilevelBackbone
from oltr.nn.multilevel import SCALE


@pytest.fixture(scope="module")
def backbone():
    torch.manual_seed(0)
    return MultilevelBackbone(Backbone("test_efficientnet", 64)).eval()


def images(number=6, size=64, seed=1):
    return torch.randn(number, 3, size, size, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def test_descriptors_are_pooled_maps(backbone):
    described = backbone.describe(images())
    last = backbone.net.forward_features(images()).mean(dim=(2, 3))
    torch.testing.assert_close(described[:, : backbone.map_channels], last.sign() * last.abs().sqrt())
    found = {}
    for info in backbone.net.feature_info[-3:]:
        module = backbone.net.get_submodule(info["module"])
        name = info["module"]
        module.register_forward_hook(lambda _, __, out, name=name: found.__setitem__(name, out.mean((2, 3))))
    backbone.net.forward_features(images())
    torch.testing.assert_close(described[:, backbone.map_channels :], torch.cat(list(found.values()), dim=1))


@torch.no_grad()
def test_features_are_centred_scaled_and_of_unit_length_by_level(backbone):
    train = backbone.describe(images(8, seed=2))
    backbone.fit_statistics(train)
    feature = backbone(images())[:, :, 0, 0]
    described, at = backbone.describe(images()), 0
    for level, width in enumerate(backbone.widths):
        for row in range(len(feature)):
            part = described[row, at : at + width] - train[:, at : at + width].mean(0)
            if level:
                part = part / train[:, at : at + width].std(0, correction=0).clamp(min=1e-6)
            expected = SCALE * (0.35 if level else 1.0) * F.normalize(part, dim=0)
            torch.testing.assert_close(feature[row, at : at + width], expected, rtol=1e-3, atol=1e-4)
        at += width
    assert at == backbone.channels == feature.shape[1]


@torch.no_grad()
def test_descriptors_pass_in_the_place_of_images(backbone):
    described = backbone.describe(images())
    assert torch.equal(backbone(described[:, :, None, None]), backbone(images()))


@torch.no_grad()
@pytest.mark.parametrize(("name", "levels"), [("test_resnet", 3), ("test_vit", 3), ("resnet32_cifar", 0)])
def test_networks_of_other_kinds(name, levels):
    size = 160 if name == "test_vit" else 32
    backbone = Backbone(name, size)
    several = MultilevelBackbone(backbone).eval()
    assert several.levels == levels and not several.has_map
    assert several(images(2, size)).shape == (2, several.channels, 1, 1)
