"""Checkpoints of the released code: read without running them, and the forward of what was read is theirs."""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict

import pytest
import timm
import torch

from oltr.errors import UserError
from oltr.nn.backbone import Backbone
from oltr.nn.released_checkpoint import read_released
from oltr.runs.import_run import released_config
from oltr.training.build import build_method, build_network
from tests.helpers.released import checkpoint, feature_model, released_forward, write_checkpoint


def network_of(path):
    found = read_released(path)
    config = released_config(found)
    method = build_method(config, torch.full((found.num_classes,), 9))
    network = build_network(config, method, found.stage)
    found.fill(network)
    return found, network.eval()


def images(number=2):
    return torch.randn(number, 3, 224, 224, generator=torch.Generator().manual_seed(4))


FORMS = [
    {"stage": 1, "fc": False},
    {"stage": 1, "fc": True, "bottleneck": True, "blocks": (3, 4, 6, 3)},
    {"stage": 2},
    {"stage": 2, "fc": False},
    {"stage": 2, "attention": False},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_forward_of_what_was_read_is_the_released_one(tmp_path, form):
    saved = checkpoint(**form)
    found, network = network_of(write_checkpoint(tmp_path / "final_model_checkpoint.pth", saved))
    views = images(1 if form.get("bottleneck") else 2)
    with torch.no_grad():
        direct, logits = released_forward(saved, views.double())
        exact, output = network.double()(views.double()), network.float()(views)
    assert logits.std() > 0.05 and direct.std() > 0.05
    for mine, theirs in ((exact.direct_feature, direct), (exact.logits, logits)):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)  # weights of attention are float32
    for mine, theirs in ((output.direct_feature, direct), (output.logits, logits)):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)
    assert found.stage == form["stage"] and found.num_classes == 5
    assert found.facts == {"epoch": 60, "best_epoch": 54, "best_acc": 0.356}


@pytest.mark.parametrize("old_format", [True, False])
def test_files_of_2019_and_of_today_hold_the_same(tmp_path, old_format):
    saved = checkpoint()
    found = read_released(write_checkpoint(tmp_path / "x.pth", saved, old_format))
    theirs = saved["state_dict_best"]["feat_model"]["module.layer2.0.conv1.weight"]
    assert torch.equal(found.state["backbone.net.layer2.0.conv1.weight"], theirs)
    assert torch.equal(found.state["head.meta.memory.centroids"], saved["centroids"])
    assert (found.fc, found.attention, found.is_whole) == (512, True, True)


def test_counters_of_batches_and_the_prefix_may_be_missing(tmp_path):
    saved = checkpoint(stage=1)
    best = saved["state_dict_best"]
    for part in best:
        best[part] = OrderedDict(
            (name.removeprefix("module."), value)
            for name, value in best[part].items()
            if "num_batches" not in name
        )
    del saved["centroids"]
    _, network = network_of(write_checkpoint(tmp_path / "x.pth", saved))
    assert torch.equal(network.backbone.net.conv1.weight, best["feat_model"]["conv1.weight"])


@pytest.mark.parametrize("name", ["resnet10", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"])
def test_the_shapes_tell_the_network(tmp_path, name):
    with torch.device("meta"):
        names = timm.create_model(name, num_classes=0).state_dict()
    saved = checkpoint(stage=1)
    saved["state_dict_best"]["feat_model"] = {f"module.{each}": torch.zeros(1) for each in names}
    assert read_released(write_checkpoint(tmp_path / "x.pth", saved)).backbone == name


class Code:
    """Unpickled by someone careless, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("old_format", [True, False])
def test_code_in_a_checkpoint_is_refused_and_not_run(tmp_path, old_format):
    made, path = tmp_path / "made", tmp_path / "x.pth"
    write_checkpoint(path, checkpoint(stage=1) | {"best_acc": Code(made)}, old_format)
    with pytest.raises(UserError, match=r"(?s)could not be read as weights.*reading that could run code"):
        read_released(path)
    assert not made.exists()
    torch.load(path, weights_only=False)  # it is no empty threat
    assert made.exists()


def without(part, name):
    def spoil(saved):
        del saved["state_dict_best"][part][f"module.{name}"]

    return spoil


def with_tensor(part, name, value):
    def spoil(saved):
        saved["state_dict_best"][part][f"module.{name}"] = value

    return spoil


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (without("classifier", "fc_selector.bias"), "concept_selector.bias is missing"),
        (without("feat_model", "layer3.0.bn2.running_var"), "layer3.0.bn2.running_var is missing"),
        (without("classifier", "cosnorm_classifier.weight"), "holds no classifier"),
        (with_tensor("classifier", "scales", torch.ones(5)), "head.scales has no place in it"),
        (with_tensor("feat_model", "fc_add.bias", torch.ones(3)), "fc.0.bias has another shape"),
        (
            with_tensor("feat_model", "modulatedatt.fc_spatial.weight", torch.ones(16, 16 * 512)),
            "score.weight has another shape",
        ),
        (with_tensor("feat_model", "layer4.1.conv1.weight", torch.ones(3)), "unknown ResNet, with 1-1-1-2"),
        (lambda saved: saved.update(centroids=torch.ones(4, 512)), "centroids has another shape"),
        (lambda saved: saved["state_dict_best"].pop("classifier"), "It holds feat_model."),
        (lambda saved: saved.pop("state_dict_best"), "It holds epoch, best_epoch, best_acc, centroids."),
    ],
)
def test_what_is_missing_or_wrong_is_named(tmp_path, spoil, words):
    saved = checkpoint()
    spoil(saved)
    with pytest.raises(UserError) as refused:
        network_of(write_checkpoint(tmp_path / "x.pth", saved))
    assert words in str(refused.value) and "x.pth" in str(refused.value)


@pytest.mark.parametrize("content", [[1, 2], {}, {"state_dict": {"conv.weight": torch.ones(2)}}])
def test_other_files_are_no_checkpoints(tmp_path, content):
    torch.save(content, tmp_path / "x.pth")
    with pytest.raises(UserError, match=r"(?s)is no checkpoint of the released code.*Try: a file of the rel"):
        read_released(tmp_path / "x.pth")


def test_training_can_start_from_its_backbone(tmp_path):
    path = write_checkpoint(tmp_path / "x.pth")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = Backbone("resnet10", 224, str(path)).net
    theirs = feature_model(attention=True, fc=True)
    own = net.state_dict()
    assert all(torch.equal(value, theirs[f"module.{name}"]) for name, value in own.items())


def test_training_with_another_network_is_told_which_it_fits(tmp_path):
    path = write_checkpoint(tmp_path / "x.pth")
    with pytest.raises(UserError, match=r"(?s)does not fit.*It fits resnet10.*--backbone resnet10"):
        Backbone("test_vit", 64, str(path))
