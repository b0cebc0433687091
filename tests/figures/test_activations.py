"""The images that activate each neuron most and least, against a sort of everything at once."""

from __future__ import annotations

import pytest
import torch

from oltr.errors import UserError
from oltr.nn.backbone import Backbone
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead
from oltr.nn.network import Network, build_attention
from oltr.runs.explain.activations import activations

VIEWS = torch.randn(23, 3, 64, 64, generator=torch.Generator().manual_seed(1))


def network(fc: int | None = None, backbone: str = "test_resnet", attention: str = "modulated") -> Network:
    torch.manual_seed(0)
    net = Backbone(backbone, 64)
    looks = build_attention(net, attention)
    if looks is not None:
        torch.nn.init.normal_(looks.self_attention.out.weight, std=0.1)
    direct = DirectFeature(net.channels, fc)
    return Network(net, direct, LinearHead(direct.dims, 3), looks).eval()


@pytest.mark.parametrize("batch", [1, 5, 23])
def test_the_strongest_of_each_neuron_by_a_sort(batch):
    net = network()
    found = activations(net, VIEWS.split(batch), keep=4, extremes=6)
    with torch.no_grad():
        maps = net.attention(net.backbone(VIEWS))
    height, width = maps.shape[2:]
    assert found.map_size == (height, width) and found.images == 23
    direct = maps.mean(dim=(2, 3))
    assert found.peaks.shape == found.peak_images.shape == found.peak_cells.shape == (maps.shape[1], 4)
    for neuron in range(0, maps.shape[1], 7):
        peak = maps[:, neuron].flatten(1).max(dim=1)
        order = peak.values.sort(descending=True, stable=True).indices[:4]
        torch.testing.assert_close(found.peaks[neuron], peak.values[order], rtol=1e-4, atol=1e-5)
        assert found.peak_images[neuron].tolist() == order.tolist()
        assert found.peak_cells[neuron].tolist() == peak.indices[order].tolist()
        values = direct[:, neuron]
        assert found.most[neuron].tolist() == values.sort(descending=True, stable=True).indices[:6].tolist()
        assert (
            found.least[neuron].tolist() == (-values).sort(descending=True, stable=True).indices[:6].tolist()
        )


def test_behind_a_layer_a_neuron_has_the_places_of_its_weighted_sum():
    net = network(fc=5)
    found = activations(net, VIEWS.split(8), keep=3, extremes=2)
    with torch.no_grad():
        maps, direct = net.attention(net.backbone(VIEWS)), net.embed(VIEWS)
        weight, bias = (part.detach() for part in net.direct_feature.fc[0].parameters())
    assert found.map_size == maps.shape[2:] and found.peaks.shape == (5, 3)
    for neuron in range(5):
        values = [
            [float(weight[neuron] @ cell + bias[neuron]) for cell in image.flatten(1).T] for image in maps
        ]
        peaks = [max(cells) for cells in values]
        order = sorted(range(23), key=lambda image: -peaks[image])[:3]
        assert found.peak_images[neuron].tolist() == order
        assert found.peak_cells[neuron].tolist() == [values[image].index(peaks[image]) for image in order]
        torch.testing.assert_close(found.peaks[neuron], torch.tensor([peaks[image] for image in order]))
    torch.testing.assert_close(direct.gather(0, found.most[:, :1].T)[0], direct.max(dim=0).values)


def test_without_a_map_places_are_not_known():
    net = network(fc=5, attention="none")
    views = torch.randn(7, net.backbone.channels, 1, 1, generator=torch.Generator().manual_seed(2))
    net.backbone = torch.nn.Identity()
    found = activations(net, views.split(3), keep=3, extremes=2)
    assert found.peak_cells is None and found.map_size == (1, 1)
    with torch.no_grad():
        torch.testing.assert_close(found.peaks, net.embed(views).T.sort(dim=1, descending=True).values[:, :3])


def test_of_images_that_tie_the_first_stay():
    same = VIEWS[:1].expand(6, -1, -1, -1)
    found = activations(network(), [same[:4], same[4:]], keep=3, extremes=2)
    assert found.peak_images.unique().tolist() == [0, 1, 2]
    assert found.most.unique().tolist() == found.least.unique().tolist() == [0, 1]


def test_fewer_images_than_wanted():
    found = activations(network(), VIEWS[:2].split(1), keep=9, extremes=50)
    assert found.peaks.shape[1] == found.most.shape[1] == found.least.shape[1] == 2


def test_no_images_at_all():
    net = network()
    with pytest.raises(UserError, match="no images"):
        activations(net, [])
    assert not net.direct_feature._forward_pre_hooks
