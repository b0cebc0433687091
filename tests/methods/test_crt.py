"""Classifier re-training: nothing of the first stage but its backbone is kept, and that stands still."""

import torch
from safetensors.torch import load_file

from oltr.data.pack import open_pack
from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.train import train
from tests.helpers.tiny import tiny_config


def test_the_classifier_starts_anew_on_the_same_backbone():
    method = METHODS["crt"]({}, torch.tensor([50, 9, 3]), image_size=32)
    first = method.build_stage1(Backbone("resnet10_half", 32))
    with torch.no_grad():
        first.head.classifier.weight.fill_(7.0)
        first.head.classifier.bias.fill_(7.0)
    second = method.build_stage2(first)
    assert second.backbone is first.backbone and second.direct_feature is first.direct_feature
    fresh = second.head.classifier
    assert fresh.weight.shape == (3, 256)
    for start in (fresh.weight, fresh.bias):  # that of a linear layer: ±1/√D
        assert start.abs().max() <= 1 / 256**0.5 and start.std() > 0
    assert torch.equal(first.head.classifier.weight, torch.full((3, 256), 7.0))


def test_a_run_leaves_the_backbone_and_its_statistics_as_stage_one_left_them(pack, tmp_path):
    config = tiny_config("crt", epochs=(1, 1))
    assert config.stage2.sampler == "class-aware"
    train(config, open_pack(pack).manifest, tmp_path / "run", TrainOptions())
    folder = RunFolder(tmp_path / "run")
    before, after = load_file(folder.stage_weights(1)), load_file(folder.model)
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"head.classifier.weight", "head.classifier.bias"}
