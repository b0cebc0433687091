"""Learning rates: by the epoch or by the step, the same curve, in every group of the optimiser."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from oltr.config import StageConfig
from oltr.training.build import build_method, build_network
from oltr.training.optimizer import load_momentum, make_optimizer
from oltr.training.schedule import LearningRates
from tests.helpers.gpu import needs_gpu
from tests.helpers.tiny import tiny_config

CPU = torch.device("cpu")
COSINE = StageConfig(epochs=6, schedule="cosine", warmup_epochs=2)
STEPPED = StageConfig(epochs=6, lr_milestones={2: 0.5, 4: 0.1}, warmup_epochs=1)


def optimizer_of(stage, device=CPU):
    config = tiny_config("oltr")
    method = build_method(config, torch.full((6,), 5))
    return make_optimizer(build_network(config, method, 2).to(device), stage, fused=device.type == "cuda")


def rates_seen(stage, epochs, steps, device=CPU):
    """The rate of the first group before each step."""
    optimizer, seen = optimizer_of(stage, device), []
    rates = LearningRates(optimizer, stage, device)
    for epoch in range(epochs):
        rates.start_epoch(epoch, steps)
        for step in range(steps):
            rates.set(step)
            seen.append(float(optimizer.param_groups[0]["lr"]))
    return seen


@pytest.mark.parametrize("stage", [COSINE, STEPPED])
def test_one_rate_an_epoch(stage):
    expected = [stage.lr * stage.lr_factor(epoch) for epoch in range(6) for _ in range(4)]
    assert rates_seen(stage, 6, 4) == expected


def test_cosine_by_the_step_against_a_loop():
    stage, steps = dataclasses.replace(COSINE, lr_every="step"), 5
    expected = []
    for step in range(6 * steps):
        if step < 2 * steps:
            expected.append((step + 1) / (2 * steps))
        else:
            expected.append(0.5 * (1 + math.cos(math.pi * (step - 2 * steps) / (4 * steps))))
    assert rates_seen(stage, 6, steps) == pytest.approx([stage.lr * factor for factor in expected])


def test_milestones_by_the_step_fall_where_they_do_by_the_epoch():
    stage, steps = dataclasses.replace(STEPPED, lr_every="step"), 5
    factors = [0.2, 0.4, 0.6, 0.8, 1.0] + [1.0] * 5 + [0.5] * 10 + [0.1] * 10
    assert rates_seen(stage, 6, steps) == pytest.approx([stage.lr * factor for factor in factors])


@pytest.mark.parametrize("stage", [COSINE, STEPPED])
def test_an_epoch_of_one_step_makes_no_difference(stage):
    by_step = dataclasses.replace(stage, lr_every="step")
    assert rates_seen(by_step, 6, 1) == rates_seen(stage, 6, 1)


def test_roles_learn_at_their_own_rates():
    stage = tiny_config("oltr").stage(2)
    optimizer = optimizer_of(stage)
    LearningRates(optimizer, stage, CPU).start_epoch(0, 8)
    rates = {group["role"]: group["lr"] / stage.lr_factor(0) for group in optimizer.param_groups}
    assert rates["memory"] == stage.memory_lr and rates["classifier"] == stage.classifier_lr
    assert rates["backbone"] == rates["attention"] == stage.lr


def test_a_saved_state_brings_momentum_and_not_its_rates():
    stage = tiny_config("oltr").stage(2)
    saved = optimizer_of(stage)
    for group in saved.param_groups:
        group["lr"] = torch.tensor(7.0)  # as a GPU leaves them
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    saved.step()
    optimizer = optimizer_of(stage)
    load_momentum(optimizer, saved.state_dict())
    for ours, theirs in zip(optimizer.param_groups, saved.param_groups, strict=True):
        assert ours["lr"] == stage.lr and isinstance(ours["lr"], float)
        for mine, other in zip(ours["params"], theirs["params"], strict=True):
            momentum = optimizer.state[mine]["momentum_buffer"]
            assert torch.equal(momentum, saved.state[other]["momentum_buffer"]) and momentum.any()


@needs_gpu
@pytest.mark.parametrize("lr_every", ["epoch", "step"])
def test_on_a_gpu_the_rates_are_tensors_there_and_the_same(lr_every):
    stage, device = dataclasses.replace(COSINE, lr_every=lr_every), torch.device("cuda", 0)
    assert rates_seen(stage, 6, 4, device) == pytest.approx(rates_seen(stage, 6, 4))
    optimizer = optimizer_of(stage, device)
    LearningRates(optimizer, stage, device)
    assert all(group["lr"].device == device for group in optimizer.param_groups)
