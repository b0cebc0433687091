"""SGD and AdamW: their groups, and AdamW against an obvious loop, through a checkpoint and in whole runs."""

from __future__ import annotations

import copy
import csv
import dataclasses
import io

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.modules.batchnorm import _BatchNorm

from oltr.config import StageConfig
from oltr.data.pack import open_pack
from oltr.training.build import build_method, build_network
from oltr.training.optimizer import load_momentum, make_optimizer
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.schedule import LearningRates
from oltr.training.train import train
from tests.helpers.gpu import needs_gpu
from tests.helpers.tiny import tiny_config
from tests.helpers.training import stop_at

ADAMW = StageConfig(
    epochs=2, optimizer="adamw", lr=1e-3, classifier_lr=3e-3, weight_decay=0.05, schedule="cosine"
)
TUNED = {"optimizer": "adamw", "layer_decay": 0.6, "keep_statistics": True, "lr": 1e-3, "lr_every": "step"}
ON_CPU = TrainOptions(accelerator="cpu")


def a_network(backbone="resnet10_half"):
    config = tiny_config("oltr", backbone=backbone)
    torch.manual_seed(0)
    return build_network(config, build_method(config, torch.full((6,), 5)), 2)


def tuned_config(**changes):
    """Both stages under `TUNED`."""
    config = tiny_config()
    stages = {f"stage{n}": dataclasses.replace(config.stage(n), **TUNED) for n in (1, 2)}
    return dataclasses.replace(config, **stages, **changes)


def draw_gradients(network, seed):
    random = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=random)


def test_by_default_the_groups_are_the_roles_and_nothing_else():
    network, stage = a_network(), tiny_config().stage(2)
    optimizer = make_optimizer(network, stage, fused=False)
    assert isinstance(optimizer, torch.optim.SGD)
    expected: dict[str, list] = {}
    for role, parameter in network.roles():
        expected.setdefault(role, []).append(parameter)
    assert [group["role"] for group in optimizer.param_groups] == list(expected)
    rates = {"classifier": stage.classifier_lr, "memory": stage.memory_lr}
    for group in optimizer.param_groups:
        assert [id(p) for p in group["params"]] == [id(p) for p in expected[group["role"]]]
        assert group["base_lr"] == rates.get(group["role"], stage.lr)
        assert group["weight_decay"] == stage.weight_decay


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_against_its_formula(nesterov):
    stage = StageConfig(lr=0.1, classifier_lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=nesterov)
    network = a_network()
    expected = {name: p.detach().clone() for name, p in network.named_parameters()}
    rates = {id(p): stage.memory_lr if role == "memory" else 0.1 for role, p in network.roles()}
    velocity = {name: torch.zeros_like(p) for name, p in expected.items()}
    optimizer = make_optimizer(network, stage, fused=False)
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"]
    for step in range(3):
        draw_gradients(network, step)
        optimizer.step()
        for name, parameter in network.named_parameters():
            gradient = parameter.grad + 0.01 * expected[name]
            velocity[name] = gradient if step == 0 else 0.9 * velocity[name] + gradient
            move = gradient + 0.9 * velocity[name] if nesterov else velocity[name]
            expected[name] = expected[name] - rates[id(parameter)] * move
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter, expected[name], rtol=1e-4, atol=1e-5, msg=name)


def test_adamw_against_torch_with_a_group_for_each_parameter():
    ours = a_network()
    theirs = copy.deepcopy(ours)
    optimizer = make_optimizer(ours, ADAMW, fused=False)
    rates = LearningRates(optimizer, ADAMW, torch.device("cpu"))
    of_role = {"classifier": ADAMW.classifier_lr, "memory": ADAMW.memory_lr}
    singly = [
        torch.optim.AdamW([p], lr=of_role.get(role, ADAMW.lr), weight_decay=0.05 if p.ndim > 1 else 0.0)
        for role, p in theirs.roles()
    ]
    base = [each.param_groups[0]["lr"] for each in singly]
    for epoch in range(2):
        rates.start_epoch(epoch, 3)
        for step in range(3):
            rates.set(step)
            draw_gradients(ours, 10 * epoch + step)
            draw_gradients(theirs, 10 * epoch + step)
            optimizer.step()
            for each, rate in zip(singly, base, strict=True):
                each.param_groups[0]["lr"] = rate * ADAMW.lr_factor(epoch)
                each.step()
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other), name


def test_adamw_decays_matrices_and_kernels_alone():
    network = a_network()
    optimizer = make_optimizer(network, ADAMW, fused=False)
    decays = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    by_name = {name: decays[id(p)] for name, p in network.named_parameters()}
    assert len(by_name) == len(decays)
    assert by_name["backbone.net.conv1.weight"] == 0.05
    assert by_name["backbone.net.bn1.weight"] == by_name["backbone.net.bn1.bias"] == 0.0


@pytest.mark.parametrize("on", ["all", "matrices"])
def test_sgd_decays_all_or_matrices_and_kernels_alone(on):
    network, stage = a_network(), StageConfig(lr=0.1, weight_decay=0.05, weight_decay_on=on)
    optimizer = make_optimizer(network, stage, fused=False)
    decays = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert len(decays) == len(list(network.parameters()))
    for name, parameter in network.named_parameters():
        expected = 0.05 if on == "all" or parameter.ndim > 1 else 0.0
        assert decays[id(parameter)] == expected, name
    rates = {id(p): group["base_lr"] for group in optimizer.param_groups for p in group["params"]}
    of_role = {"classifier": stage.classifier_lr, "memory": stage.memory_lr}
    assert all(rates[id(p)] == of_role.get(role, stage.lr) for role, p in network.roles())


def test_the_state_of_adamw_goes_through_a_file():
    straight, resumed = a_network(), a_network()
    first = make_optimizer(straight, ADAMW, fused=False)
    for seed in range(2):
        draw_gradients(straight, seed)
        first.step()
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    resumed.load_state_dict(straight.state_dict())
    second = make_optimizer(resumed, ADAMW, fused=False)
    load_momentum(second, torch.load(file, weights_only=True))
    for network, optimizer in ((straight, first), (resumed, second)):
        draw_gradients(network, 7)
        optimizer.step()
    for (name, mine), other in zip(straight.named_parameters(), resumed.parameters(), strict=True):
        assert torch.equal(mine, other), name


def interrupted(pack, tmp_path, monkeypatch, at, options):
    """Names of the weights that differ between a run that was stopped at that step and one that was not."""
    manifest, config = open_pack(pack).manifest, tuned_config()
    train(config, manifest, tmp_path / "straight", options)
    stop_at(monkeypatch, at)
    with pytest.raises(KeyboardInterrupt):
        train(config, manifest, tmp_path / "run", options)
    train(config, manifest, tmp_path / "run", dataclasses.replace(options, resume=True))
    straight, resumed = (load_file(RunFolder(tmp_path / name).model) for name in ("straight", "run"))
    return [name for name in straight if not torch.equal(straight[name], resumed[name])]


@pytest.mark.parametrize("at", [12, 20])  # of 32 steps: in the second epoch of stage 1, the first of stage 2
def test_an_interrupted_run_under_adamw_resumes_exactly(pack, tmp_path, monkeypatch, at):
    assert interrupted(pack, tmp_path, monkeypatch, at, ON_CPU) == []


@needs_gpu
def test_an_interrupted_run_under_adamw_resumes_exactly_on_a_gpu(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    assert interrupted(pack, tmp_path, monkeypatch, 12, TrainOptions()) == []


def test_kept_statistics_stay_while_the_weights_learn(pack, tmp_path):
    network, *_ = train(tuned_config(keep="last"), open_pack(pack).manifest, tmp_path / "run", ON_CPU)
    norms = [module for module in network.backbone.modules() if isinstance(module, _BatchNorm)]
    assert norms
    for norm in norms:  # as they were made
        assert not norm.running_mean.any() and (norm.running_var == 1).all() and not norm.num_batches_tracked
        assert (norm.weight != 1).any()


def test_the_table_has_the_mean_rate_of_each_epoch(pack, tmp_path):
    config = tuned_config()
    train(config, open_pack(pack).manifest, tmp_path / "run", ON_CPU)
    rows = list(csv.DictReader(RunFolder(tmp_path / "run").metrics.open()))
    steps = 8  # 64 images in batches of 8
    for row in rows:
        stage, epoch = config.stage(int(row["stage"])), int(row["epoch"]) - 1
        expected = sum(stage.lr * stage.lr_factor(epoch, step, steps) for step in range(steps)) / steps
        assert float(row["lr"]) == pytest.approx(expected)


def test_what_timm_keeps_out_of_weight_decay_has_none():
    network = a_network("vit_tiny_patch16_224")
    net = network.backbone.net
    for stage in (ADAMW, StageConfig(weight_decay=0.05, weight_decay_on="matrices")):
        decay = {
            id(p): g["weight_decay"]
            for g in make_optimizer(network, stage, False).param_groups
            for p in g["params"]
        }
        assert net.pos_embed.ndim == net.cls_token.ndim == 3
        assert decay[id(net.pos_embed)] == decay[id(net.cls_token)] == 0
        assert decay[id(net.blocks[0].attn.qkv.weight)] == 0.05
        assert decay[id(net.blocks[0].norm1.weight)] == 0
