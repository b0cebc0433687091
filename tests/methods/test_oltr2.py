"""Our own method: its loss against loops, one expert or several, and what is left of it in a finished run."""

import dataclasses
import math

import pytest
import torch

from oltr.config import StageConfig
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.losses import MixedLabels, agreement_loss
from oltr.methods import METHODS
from oltr.nn.backbone import Backbone
from oltr.nn.cosine_head import CosineHead
from oltr.nn.expert_head import ExpertHead
from oltr.nn.heads import LinearHead
from oltr.openset import SCORES
from oltr.runs.trained_run import TrainedRun
from oltr.training.optimizer import make_optimizer
from oltr.training.options import TrainOptions
from oltr.training.train import train
from tests.helpers.tiny import tiny_config

COUNTS = [40, 20, 10, 5, 2]
LABELS = torch.tensor([0, 0, 1, 2, 3, 4])


def example(**changes):
    torch.manual_seed(0)
    method = METHODS["oltr2"](changes, torch.tensor(COUNTS), image_size=32)
    return method, method.build_stage1(Backbone("resnet32_cifar", 32)), torch.randn(6, 3, 32, 32)


def balanced_loop(logits, label):
    powers = [n * math.exp(z) for n, z in zip(COUNTS, logits, strict=True)]
    return -math.log(powers[label] / sum(powers))


@pytest.mark.parametrize("experts", [1, 3])
@pytest.mark.parametrize("classifier", ["linear", "cosine"])
def test_the_loss_sums_the_balanced_softmax_of_every_expert(experts, classifier):
    method, network, images = example(experts=experts, classifier=classifier, agreement=0.25)
    output = network.eval()(images)
    kinds = {"linear": LinearHead, "cosine": CosineHead}
    assert isinstance(network.head, ExpertHead if experts > 1 else kinds[classifier])
    direct = output.direct_feature
    each = network.head.expert_logits(direct) if experts > 1 else output.logits[None]
    torch.testing.assert_close(output.logits, each.mean(dim=0))
    expected = sum(
        balanced_loop(expert[i].tolist(), label) for expert in each for i, label in enumerate(LABELS.tolist())
    )
    terms = method.loss(1, network, output, LABELS)
    assert terms["cross_entropy"].item() == pytest.approx(expected / len(LABELS), rel=1e-4)
    assert set(terms) == {"cross_entropy"} | ({"agreement"} if experts > 1 else set())
    if experts > 1:
        assert terms["agreement"].item() == pytest.approx(0.25 * agreement_loss(each).item(), rel=1e-5)


def test_an_expert_sees_its_own_part_of_the_feature_alone():
    _, network, images = example(experts=3)
    feature = network.eval()(images).direct_feature
    changed = feature.clone()
    changed[:, :64] += 1
    before, after = network.head.expert_logits(feature), network.head.expert_logits(changed)
    assert not torch.allclose(before[0], after[0]) and torch.equal(before[1:], after[1:])
    weight, bias = network.head.weight[1], network.head.bias.view(3, -1)[1]
    torch.testing.assert_close(before[1], feature[:, 64:128] @ weight.T + bias)


def test_the_loss_of_mixed_images_is_the_shares_of_both_labels():
    method, network, images = example(experts=2)
    output = network.eval()(images)
    other, share = LABELS.roll(1), torch.linspace(0, 1, 6)
    mixed = method.mixed_loss(1, network, output, MixedLabels(LABELS, other, share, LABELS))
    each = network.head.expert_logits(output.direct_feature).tolist()
    expected = sum(
        s * balanced_loop(expert[i], a) + (1 - s) * balanced_loop(expert[i], b)
        for expert in each
        for i, (a, b, s) in enumerate(zip(LABELS.tolist(), other.tolist(), share.tolist(), strict=True))
    )
    assert mixed["cross_entropy"].item() == pytest.approx(expected / 6, rel=1e-4)


def test_views_are_compared_in_parts_that_learn():
    method, network, images = example(contrast=0.5, consistency=1.0)
    views = [network(images + noise) for noise in (0, 0.1, 0.2)]
    terms = method.across_views(1, network, views, LABELS)
    assert set(terms) == {"contrast", "consistency"}
    assert -1 <= terms["consistency"].item() <= 1
    sum(terms.values()).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.auxiliary.parameters())


def test_without_terms_on_views_there_are_no_auxiliary_parts():
    method, network, images = example(contrast=0.0, consistency=0.0)
    assert network.auxiliary is None
    assert method.across_views(1, network, [network(images)] * 2, LABELS) == {}


def test_a_finished_run_is_without_its_auxiliary_parts_and_decides_by_the_memory(pack, tmp_path):
    config = tiny_config("oltr2", epochs=(1, 1), settings=METHODS["oltr2"].all_settings({"experts": 2}))
    views = dataclasses.replace(config.stage1, views=3, mix="cutmix", mix_partner="balanced")
    config = dataclasses.replace(config, stage1=views, stage2=None)
    network, *_ = train(config, open_pack(pack).manifest, tmp_path / "run", TrainOptions())
    run, images = TrainedRun(tmp_path / "run"), torch.randn(2, 3, 32, 32)
    assert not [name for name in run.network.state_dict() if name.startswith("auxiliary")]
    torch.testing.assert_close(run.network.cpu()(images).logits, network.cpu().eval()(images).logits)
    assert METHODS["oltr2"].score == "scale-70+spread-cosine" in SCORES


@pytest.mark.parametrize("wrong", [{"experts": 0}, {"contrast": -1.0}, {"classifier": "round"}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UserError, match=f"settings.{next(iter(wrong))}"):
        METHODS["oltr2"].check(wrong)


def test_without_views_it_says_what_is_left_out(pack, tmp_path, capsys):
    config = dataclasses.replace(tiny_config("oltr2", epochs=(1, 1)), stage2=None)
    train(config, open_pack(pack).manifest, tmp_path / "run", TrainOptions())
    said = " ".join(capsys.readouterr().err.split())
    assert "terms of oltr2 that compare views are left out" in said and "stage1.views=2" in said


def test_biases_of_experts_have_no_weight_decay_where_matrices_alone_have():
    _, network, _ = example(experts=3)
    stage = StageConfig(weight_decay=0.1, weight_decay_on="matrices")
    groups = make_optimizer(network, stage, fused=False).param_groups
    decays = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    assert decays[id(network.head.bias)] == 0 and decays[id(network.head.weight)] == 0.1
