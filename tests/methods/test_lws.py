"""Learnable weight scaling: one number per class learns, through a whole run and back from its folder."""

import torch
from safetensors.torch import load_file

from oltr.data.pack import open_pack
from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.train import train
from tests.helpers.tiny import tiny_config


def test_the_second_network_starts_by_saying_what_the_first_said():
    method = METHODS["lws"]({}, torch.tensor([50, 9, 3]), image_size=32)
    first = method.build_stage1(Backbone("resnet10_half", 32)).eval()
    images = torch.randn(2, 3, 32, 32)
    before = first(images).logits
    second = method.build_stage2(first).eval()
    torch.testing.assert_close(second(images).logits, before)
    assert [name for name, _ in second.head.named_parameters()] == ["scale"]
    assert [role for role, p in second.roles() if p is second.head.scale] == ["classifier"]


def test_a_run_changes_the_scales_alone_and_is_read_back(pack, tmp_path):
    config = tiny_config("lws", epochs=(1, 1))
    assert config.stage2.sampler == "class-aware"
    network, *_ = train(config, open_pack(pack).manifest, tmp_path / "run", TrainOptions())
    folder = RunFolder(tmp_path / "run")
    before, after = load_file(folder.stage_weights(1)), load_file(folder.model)
    scale = after.pop("head.scale")
    assert scale.shape == (6,) and (scale != 1).all()
    before = {name.replace("head.classifier.", "head."): value for name, value in before.items()}
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    images = torch.randn(2, 3, 32, 32)
    again = TrainedRun(folder.path).network.cpu()
    torch.testing.assert_close(again(images).logits, network.cpu().eval()(images).logits)
