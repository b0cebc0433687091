"""LDAM-DRW: a cosine classifier, margins in both stages, weights in the second, and a run of one stage."""

import math

import pytest
import torch
from safetensors.torch import load_file

from oltr.data.pack import open_pack
from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.nn.class_counts import counts_of
from oltr.recipes import resolve
from oltr.runs.evaluate_run import load_network
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.train import train
from tests.helpers.tiny import tiny_config

COUNTS, LABELS = [625, 81, 16], [0, 2, 1, 0]


def make(**changes):
    settings = resolve("glyphs", "ldam-drw").settings | changes
    return METHODS["ldam-drw"](settings, torch.tensor(COUNTS), image_size=32)


def ldam_loop(cosines, stage):
    """Cao et al. 2019: s = 30, margins C / n^(1/4) of at most 0.5, weights (1 − β) / (1 − β^n)."""
    margins = [0.5 * (16 / n) ** 0.25 for n in COUNTS]
    total = sum_of_weights = 0.0
    for row, label in zip(cosines, LABELS, strict=True):
        lowered = [30 * (c - margins[k] * (k == label)) for k, c in enumerate(row)]
        weight = (1 - 0.9999) / (1 - 0.9999 ** COUNTS[label]) if stage == 2 else 1.0
        total += weight * (math.log(sum(math.exp(z) for z in lowered)) - lowered[label])
        sum_of_weights += weight
    return total / sum_of_weights


@pytest.mark.parametrize("stage", [1, 2])
def test_the_loss_equals_a_loop_over_the_whole_head(stage):
    torch.manual_seed(0)
    method = make()
    network = method.build_stage1(Backbone("resnet10_half", 32)).eval()
    assert method.build_stage2(network) is network
    output = network(torch.randn(4, 3, 32, 32))
    cosines = []
    for v in output.direct_feature.tolist():
        cosines.append([sum(a * b for a, b in zip(v, w, strict=True)) / math.hypot(*v) / math.hypot(*w)
                        for w in network.head.classifier.weight.tolist()])  # fmt: skip
    torch.testing.assert_close(output.logits, 30 * torch.tensor(cosines), rtol=1e-4, atol=1e-4)
    terms = method.loss(stage, network, output, torch.tensor(LABELS))
    assert terms.keys() == {"cross_entropy"}
    assert terms["cross_entropy"].item() == pytest.approx(ldam_loop(cosines, stage), rel=1e-4)


def test_stage_1_is_shared_where_scale_and_margin_are_equal():
    assert make().first_stage == make(beta=0.99).first_stage
    names = {make().first_stage, make(scale=20.0).first_stage, make(margin=0.3).first_stage, "plain"}
    assert len(names) == 4


def test_a_run_of_one_stage_keeps_its_counts(pack, tmp_path):
    config = tiny_config("ldam-drw", epochs=(1, 1), stage2=None)
    manifest = open_pack(pack).manifest
    train(config, manifest, tmp_path / "run", TrainOptions())
    folder = RunFolder(tmp_path / "run")
    counts = manifest.train_counts().tolist()
    assert load_file(folder.model)["head.train_counts"].tolist() == counts
    assert counts_of(load_network(folder)).tolist() == counts
