"""Weights of packages and files: each tensor in its place, or a refusal with the net that fits."""

from __future__ import annotations

import warnings

import pytest
import timm
import torch
from safetensors.torch import save_file

from oltr.errors import UserError
from oltr.nn.backbone import Backbone
from oltr.nn.weights import find_weights, load_weights, packaged
from tests.helpers.weight_packages import lite_file, make_package


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", [each.name for each in packaged()])
def test_packaged_weights_are_in_the_places_that_their_names_say(name):
    """Against the names of the packages' own network, block by block."""
    found = find_weights(name)
    file = torch.load(found.path, weights_only=True)
    net = Backbone(found.backbone, 64, name).net
    own = net.state_dict()
    pairs = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2"}
    blocks = [f"blocks.{i}.{j}" for i, stage in enumerate(net.blocks) for j in range(len(stage))]
    for number, place in enumerate(blocks):
        separable = f"_blocks.{number}._expand_conv.weight" not in file
        parts = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
        if not separable:
            parts = {"_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw", "_bn1": "bn2"}
            parts |= {"_project_conv": "conv_pwl", "_bn2": "bn3"}
        pairs |= {f"_blocks.{number}.{theirs}": f"{place}.{ours}" for theirs, ours in parts.items()}
    compared = 0
    for theirs, ours in pairs.items():
        for part in ("weight", "bias", "running_mean", "running_var"):
            if f"{ours}.{part}" in own:
                assert torch.equal(own[f"{ours}.{part}"], file[f"{theirs}.{part}"])
                compared += 1
    assert compared == sum("num_batches_tracked" not in each for each in own)


def test_a_packages_file_given_by_its_path_is_paired_in_order_and_told(tmp_path):
    state = lite_file(tmp_path / "lite.pth", "test_efficientnet")
    with pytest.warns(UserWarning, match=r"lite.pth have other names and were paired in order"):
        net = Backbone("test_efficientnet", 64, str(tmp_path / "lite.pth")).net
    for name, value in net.state_dict().items():
        assert torch.equal(value, state[name]) or "num_batches" in name


def _swap_names(state):
    first, second = [n for n, v in state.items() if n.endswith("bn1.weight") or n.endswith("bn1.bias")][:2]
    names = {first: second, second: first}
    return {f"_{names.get(n, n)}": v for n, v in state.items()}


def _one_shape(state):
    name = next(n for n, v in state.items() if v.ndim == 4)
    return {f"_{n}": v[:-1] if n == name else v for n, v in state.items()}


@pytest.mark.parametrize(
    "spoil",
    [
        _swap_names,
        _one_shape,
        lambda state: dict(list({f"_{n}": v for n, v in state.items()}.items())[:-4]),
        lambda state: {"_x.weight": torch.zeros(3)} | {f"_{n}": v for n, v in state.items()},
    ],
)
def test_what_differs_anywhere_is_not_paired_in_order(tmp_path, spoil):
    torch.save(spoil(timm.create_model("test_efficientnet", num_classes=0).state_dict()), tmp_path / "x.pth")
    with pytest.raises(UserError, match=r"does not fit this backbone: 0 of \d+ tensors match"):
        Backbone("test_efficientnet", 64, str(tmp_path / "x.pth"))


def test_safetensors_are_not_paired_in_order(tmp_path):
    state = timm.create_model("test_efficientnet", num_classes=0).state_dict()
    save_file({f"{i:04}.{n}": v for i, (n, v) in enumerate(state.items())}, tmp_path / "x.safetensors")
    with pytest.raises(UserError, match="0 of"):
        Backbone("test_efficientnet", 64, str(tmp_path / "x.safetensors"))


def test_counters_of_batches_may_be_missing(tmp_path):
    state = timm.create_model("test_resnet", num_classes=0).state_dict()
    old = {n: v + 1 for n, v in state.items() if "num_batches" not in n}
    torch.save(old, tmp_path / "old.pth")
    own = Backbone("test_resnet", 32, str(tmp_path / "old.pth")).net.state_dict()
    assert all(torch.equal(own[name], value) for name, value in old.items())


@pytest.mark.parametrize(
    ("file", "network", "fits"),
    [
        ("resnet18-f37072fd.pth", "resnet18", "resnet18"),  # as torchvision names it
        ("my_resnet18d_best.pth", "resnet18d", "resnet18d"),
        ("weights.pth", "tf_efficientnet_lite0", "tf_efficientnet_lite0"),
    ],
)
def test_weights_of_another_network_name_the_one_they_fit(tmp_path, file, network, fits):
    torch.save(timm.create_model(network).state_dict(), tmp_path / file)
    with pytest.raises(
        UserError, match=r"(?s)does not fit this backbone: \d+ of \d+ tensors match"
    ) as refused:
        Backbone("test_vit", 64, str(tmp_path / file))
    assert f"It fits {fits}." in str(refused.value) and f"--backbone {fits}" in str(refused.value)


def test_a_package_given_by_its_path_for_another_network_names_its_own(tmp_path):
    with pytest.raises(UserError, match="It fits tf_efficientnet_lite0"):
        Backbone("resnet18", 64, str(find_weights("efficientnet-lite0").path))


def test_weights_of_a_network_nobody_knows(tmp_path):
    torch.save({"a.weight": torch.zeros(3)}, tmp_path / "mystery.pth")
    with pytest.raises(UserError, match=r"(?s)0 of \d+ tensors match.\nTry: the backbone these weights were"):
        Backbone("test_resnet", 64, str(tmp_path / "mystery.pth"))


def test_weights_of_a_larger_network_are_told(tmp_path):
    torch.save(timm.create_model("resnet18").state_dict(), tmp_path / "x.pth")
    with pytest.warns(UserWarning, match=r"tensors of x.pth have no place in this backbone"):
        Backbone("resnet10", 96, str(tmp_path / "x.pth"))


def test_packaged_weights_of_another_network_are_refused_whatever_fits(tmp_path, monkeypatch):
    path = make_package(tmp_path, monkeypatch, 1, "tf_efficientnet_lite0")
    with pytest.raises(UserError, match=r"(?s)does not fit tf_efficientnet_lite1: 0 of.*--force-reinstall"):
        Backbone("tf_efficientnet_lite1", 64, "efficientnet-lite1")
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(UserError, match="It ends too early"):
        Backbone("tf_efficientnet_lite1", 64, "efficientnet-lite1")


def test_the_backbone_must_be_that_of_packaged_weights():
    with pytest.raises(UserError, match="are for tf_efficientnet_lite0, not for resnet18"):
        Backbone("resnet18", 64, "efficientnet-lite0")


def test_weights_of_a_run_of_ours_are_read_without_its_head(tmp_path):
    net = timm.create_model("test_resnet", num_classes=0)
    run = {f"backbone.net.{n}": v for n, v in net.state_dict().items()}
    run |= {f"head.memory.part{n}": torch.zeros(2) for n in range(40)}
    save_file(run, tmp_path / "model.safetensors")
    load_weights(net, tmp_path / "model.safetensors")
