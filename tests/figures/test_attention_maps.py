"""Attention maps against the formula, and their picture."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.attention_overlay import attention_figure
from oltr.nn.attention import by_position
from oltr.nn.backbone import Backbone
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network, build_attention
from oltr.runs.explain.attention_maps import attention_maps


def network(kind: str, form: str = "pointwise") -> Network:
    torch.manual_seed(0)
    backbone = Backbone("test_resnet", 64)
    attention = build_attention(backbone, kind, form)
    if attention is not None and attention.self_attention is not None:
        torch.nn.init.normal_(attention.self_attention.out.weight, std=0.1)  # it starts at zero
    direct = DirectFeature(backbone.channels)
    return Network(backbone, direct, LinearHead(direct.dims, 3), attention).eval()


VIEWS = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("form", ["pointwise", "released"])
def test_maps_by_the_formula(form):
    net = network("modulated", form=form)
    maps = attention_maps(net, VIEWS)
    with torch.no_grad():
        f = net.backbone(VIEWS)
        attention, rows = net.attention.self_attention, by_position(f)
        affinity = (attention.theta(rows) @ attention.phi(rows).transpose(1, 2)).softmax(dim=2)
        context = attention.out(affinity @ attention.g(rows))  # B×HW×C
        scores = net.attention.spatial.score
        weight = (scores(f.flatten(1)) if form == "released" else scores(rows)[..., 0]).softmax(dim=1)
    height, width = f.shape[2:]
    assert maps.size == (height, width) and height * width > 1
    for image in range(2):
        for row in range(height):
            for column in range(width):
                at = row * width + column
                length = context[image, at].square().sum().sqrt().item()
                share = weight[image, at].item()
                assert maps.self_attention[image, row, column] == pytest.approx(length, rel=1e-4)
                assert maps.spatial[image, row, column] == pytest.approx(share, rel=1e-4)
                assert maps.modulated[image, row, column] == pytest.approx(share * length, rel=1e-4)
    np.testing.assert_allclose(maps.spatial.sum(axis=(1, 2)), 1, rtol=1e-5)


def test_parts_that_are_switched_off_are_none():
    alone = attention_maps(network("self"), VIEWS)
    assert alone.self_attention is not None and alone.spatial is None and alone.modulated is None
    weights = attention_maps(network("spatial"), VIEWS)
    assert weights.self_attention is None and weights.spatial is not None and weights.modulated is None


def test_no_attention_is_said():
    with pytest.raises(UserError, match="no attention"):
        attention_maps(network("none"), VIEWS)


def test_nothing_of_the_network_changes():
    net = network("modulated")
    before = net(VIEWS).logits
    attention_maps(net, VIEWS)
    assert torch.equal(net(VIEWS).logits, before)
    assert not net.attention.self_attention._forward_hooks and not net.attention.spatial._forward_hooks


@pytest.mark.parametrize("kind", ["modulated", "self", "spatial"])
def test_the_picture_says_size_scale_and_what_is_missing(kind):
    maps = attention_maps(network(kind), VIEWS)
    figure = attention_figure(np.zeros((2, 64, 64, 3), dtype=np.uint8), maps, ["cat, many-shot", "dog"])
    assert len(figure.axes) == 8
    height, width = maps.size
    assert f"map of {height}×{width} positions" in figure.get_suptitle()
    assert [axes.get_xlabel() for axes in figure.axes[::4]] == ["cat, many-shot", "dog"]
    panels = dict(zip(("self_attention", "spatial", "modulated"), figure.axes[5:], strict=True))
    for part, axes in panels.items():
        values = getattr(maps, part)
        if values is None:
            assert (
                "settings.attention" in axes.texts[0].get_text() or "needs self" in axes.texts[0].get_text()
            )
        else:
            assert f"{values[1].min():.3g} to {values[1].max():.3g}" in axes.get_xlabel()
            assert axes.images[1].get_clim() == (0, pytest.approx(values[1].max()))
    figure.savefig(io.BytesIO())


def test_attention_that_is_zero_everywhere_is_drawn():
    torch.manual_seed(0)
    net = network("modulated")
    torch.nn.init.zeros_(net.attention.self_attention.out.weight)
    figure = attention_figure(np.zeros((2, 64, 64, 3), dtype=np.uint8), attention_maps(net, VIEWS), ["", ""])
    assert figure.axes[1].get_xlabel() == "length 0 to 0"
    figure.savefig(io.BytesIO())
