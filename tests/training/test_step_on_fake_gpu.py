"""Whole steps on a pretended GPU: nothing in them waits for it, changes shape, or escapes a CUDA graph.

A step runs twice. On fake CUDA tensors in bfloat16, with the optimiser's fused kernels taken as run and
without the backward pass: the autograd engine asks for a stream of the GPU, and there is none. On fake meta
tensors with the backward pass, where there is no autocast and no fused kernel.
"""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from oltr.config import DistillConfig
from oltr.data.augment import Augment, draws_per_view
from oltr.data.batches import MixedBatch, TrainBatch
from oltr.data.mixing import MIXING_DRAWS
from oltr.data.mosaics import half_of
from oltr.methods import METHODS
from oltr.nn import blocks
from oltr.recipes import recipe_names
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.ema import WeightAverage
from oltr.training.frozen import freeze, set_training_mode
from oltr.training.optimizer import make_optimizer
from oltr.training.schedule import LearningRates
from oltr.training.step import BatchLoss, Step
from oltr.training.teacher import Teacher
from tests.helpers.fake_gpu import FakeGPU, NotRecordable, OnDeviceAlone, fake, pretend_gpu
from tests.helpers.tiny import tiny_config

COUNTS = torch.tensor([120, 40, 9, 4, 3, 2])
SIZE = 18
RATES = {"schedule": "cosine", "lr_every": "step", "ema": 0.99}
RECIPE = RATES | {"views": 2, "mix": "cutmix", "mix_partner": "balanced", "mosaics": 0.5}
STRONG = {"affine": 0.5, "colour": 0.5, "erase": 0.5, "jitter": 0.4}


def configured(name, stage=None, data=None, **changes):
    """The tiny configuration with the same changes in each of its stages."""
    config = tiny_config(name, **changes)
    stages = {
        f"stage{number}": dataclasses.replace(config.stage(number), **(RATES | (stage or {})))
        for number in range(1, config.num_stages + 1)
    }
    return dataclasses.replace(config, **stages, data=dataclasses.replace(config.data, **(data or {})))


def a_batch(config, stage, device, features=None):
    mixed, data = stage.mix != "none", config.data
    rows = SIZE * (1 + mixed)
    views = SIZE * (stage.views + mixed) + (half_of(SIZE) if stage.mosaics else 0)
    stored = data.stored_size
    pixels = torch.empty(rows, stored, stored, 3, dtype=torch.uint8, device=device).permute(0, 3, 1, 2)
    parts = [
        pixels if features is None else torch.empty(rows, features, 1, 1, device=device),
        torch.empty(views, draws_per_view(data), device=device),
        torch.empty(rows, dtype=torch.long, device=device),
    ]
    mixing = [torch.empty(SIZE, MIXING_DRAWS, device=device)] if mixed else []
    return (MixedBatch if mixed else TrainBatch)(*parts, *mixing)


def a_teacher(config, order):
    network = build_network(config, build_method(config, COUNTS), 1)
    return Teacher(network, DistillConfig("a run"), order or None)


def run_steps(monkeypatch, device, config, number=1, teacher=None):
    """Steps of a stage: one with the backward pass, or two, where the second changes nothing but values."""
    pretend_gpu(monkeypatch)
    stage = config.stage(number)
    method = build_method(config, COUNTS)
    network = build_network(config, method, number)
    freeze(network, stage, config.data.image_size)
    method.on_stage_start(number, network, lambda: torch.randn(6, network.direct_feature.dims))
    teacher = None if teacher is None else a_teacher(config, teacher)
    with FakeGPU():
        for module in (method, network, *([teacher.network] if teacher else [])):
            module._apply(lambda t: fake(t, device))
        if teacher and teacher.order is not None:
            teacher.order = fake(teacher.order, device)
        set_training_mode(network, stage)
        on_cuda = device == "cuda"
        optimizer = make_optimizer(network, stage, fused=on_cuda)
        rates = LearningRates(optimizer, stage, torch.device(device))
        rates.start_epoch(0, 2)
        loss = BatchLoss(
            method,
            number,
            network,
            Augment(config.data, device),
            precision="auto",
            config=stage,
            teacher=teacher,
        )
        average = WeightAverage(network, stage.ema) if stage.ema else None
        step = Step(loss, optimizer, average=average)
        batch = a_batch(config, stage, device, getattr(network.backbone, "described", None))
        if not on_cuda:
            with OnDeviceAlone():
                step(batch)
            return step
        monkeypatch.setattr(Tensor, "backward", lambda loss: pretend_gradients(optimizer))
        seen = []
        for at in range(2):
            with OnDeviceAlone(), torch.no_grad():
                rates.set(at)
                step(batch)
            seen.append(held(step))
    # What a step replaces or counts on the host, a graph that is replayed leaves as it was.
    first, second = seen
    assert first.keys() == second.keys()
    assert [place for place in first if first[place] is not second[place]] == []
    return step


def pretend_gradients(optimizer):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.empty_like(parameter)


def held(step):
    """Everything that a step finds in its objects: tensors, and numbers and other values of the host."""
    found = {"loss_sum": step.loss_sum}
    parts = {"loss": step.batch_loss}
    if step.average is not None:
        parts["average"] = step.average.network
        found |= {f"average.{key}": value for key, value in plain(vars(step.average))}
    for name, part in parts.items():
        for path, module in part.named_modules():
            found |= {f"{name}.{path}.{key}": value for key, value in plain(vars(module))}
            found |= {f"{name}.{path}.{key}": value for key, value in module._buffers.items()}
            found |= {f"{name}.{path}.{key}": value for key, value in module._parameters.items()}
    for at, state in enumerate(step.optimizer.state.values()):
        found |= {f"optimizer.{at}.{key}": value for key, value in state.items()}
    for at, group in enumerate(step.optimizer.param_groups):
        found |= {f"optimizer.group{at}.{key}": value for key, value in plain(group)}
    return found


def plain(values):
    kinds = (Tensor, int, float, str, type(None))
    return [(key, value) for key, value in values.items() if isinstance(value, kinds)]


BOTH = pytest.mark.parametrize("device", ["cuda", "meta"])
# Methods with the plain model's first stage share it.
FIRST = [name for name in sorted(METHODS) if name == "plain" or METHODS[name].first_stage != "plain"]
SECOND = [name for name in sorted(METHODS) if name != "logit-adjusted"]  # which fits its head in one go
STAGES = [(name, 1) for name in FIRST] + [(name, 2) for name in SECOND]


@BOTH
@pytest.mark.parametrize("recipe", ["as published", "modern"])
@pytest.mark.parametrize(("name", "number"), STAGES)
def test_every_stage_of_every_method(monkeypatch, device, name, number, recipe):
    stage, data = (RECIPE, STRONG) if recipe == "modern" else ({}, {})
    step = run_steps(monkeypatch, device, configured(name, stage, data), number)
    if device == "meta":
        # DDP waits for the gradient of every parameter that learns.
        without = [n for n, p in step.batch_loss.named_parameters() if p.requires_grad and p.grad is None]
        assert without == []


MIXES = [
    {"mix": mix, "mix_partner": partner} for mix in ("cutmix", "mixup") for partner in ("batch", "balanced")
]
VIEWS = [{"views": 2} | mix for mix in [{}, *MIXES]]
VIEWS += [{"views": views} | mix for views in (1, 3) for mix in ({}, MIXES[1])]
VIEWS += [{"mosaics": 0.5} | mix for mix in ({}, {"views": 2}, {"mix": "mixup"}, {"views": 3} | MIXES[0])]


@BOTH
@pytest.mark.parametrize("stage", VIEWS, ids=lambda stage: "-".join(map(str, stage.values())) or "one")
def test_every_kind_of_view(monkeypatch, device, stage):
    run_steps(monkeypatch, device, configured("oltr2", stage, settings={"consistency": 0.5}))


@BOTH
@pytest.mark.parametrize(
    "settings",
    [
        {"contrast": 0.0},
        {"classifier": "cosine"},
        {"experts": 3},
        {"experts": 2, "classifier": "cosine", "agreement": 0.0},
    ],
    ids=str,
)
def test_every_part_of_our_method(monkeypatch, device, settings):
    run_steps(monkeypatch, device, configured("oltr2", RECIPE, settings=settings))


@BOTH
@pytest.mark.parametrize("recipe", sorted(name for name in recipe_names() if name.endswith("-modern")))
def test_our_method_under_every_modern_recipe(monkeypatch, device, recipe):
    run_steps(monkeypatch, device, configure(recipe, "oltr2"))


@BOTH
@pytest.mark.parametrize("order", [(), (5, 4, 3, 2, 1, 0)])
@pytest.mark.parametrize("stage", [{}, RECIPE], ids=["plain", "recipe"])
def test_a_teacher(monkeypatch, device, order, stage):
    run_steps(monkeypatch, device, configured("oltr2", stage), teacher=order)


@pytest.mark.parametrize("crop", ["resized", "random", "padded"])
@pytest.mark.parametrize("strong", [*([name] for name in STRONG), [*STRONG], []], ids="-".join)
def test_every_augmentation(crop, strong):
    data = {name: STRONG[name] if name in strong else 0.0 for name in STRONG}
    config = configured("plain", data=data | {"crop": crop, "stored_size": 36})
    with FakeGPU():
        augment, batch = Augment(config.data, "cuda"), a_batch(config, config.stage1, "cuda")
        with OnDeviceAlone():
            views = augment.train(batch.pixels, batch.draws)
    assert views.shape == (SIZE, 3, 32, 32) and views.device.type == "cuda"


@pytest.mark.parametrize(
    "stage",
    [
        {"optimizer": "adamw", "layer_decay": 0.7},
        {"nesterov": True, "weight_decay_on": "matrices"},
        {"momentum": 0.0},
        {"ema": 0.0},
        {"lr_every": "epoch"},
        {"keep_statistics": True},
    ],
    ids=str,
)
def test_every_kind_of_update(monkeypatch, stage):
    run_steps(monkeypatch, "cuda", configured("plain", stage))


@BOTH
@pytest.mark.parametrize(("name", "number"), [("plain", 1), ("oltr", 2), ("oltr-paper", 2)])
def test_blocks_of_classes(monkeypatch, device, name, number):
    monkeypatch.setattr(blocks, "LARGEST", 2 * SIZE)
    run_steps(monkeypatch, device, configured(name), number)


@BOTH
@pytest.mark.parametrize("name", ["plain", "oltr"])
def test_features_of_a_frozen_backbone(monkeypatch, device, name):
    frozen = {"frozen": ("backbone",), "freeze_statistics": True}
    run_steps(monkeypatch, device, configured(name, frozen, train_backbone="none"), 2)


def in_its_place(method, logits, labels):
    method.last = logits.mean(dim=0)


def counted(method, logits, labels):
    method.steps = getattr(method, "steps", 0) + 1


FAULTS = {
    "a value on the host": lambda method, logits, labels: logits.sum().item(),
    "a choice by value": lambda method, logits, labels: bool((labels > 0).any()),
    "a shape by value": lambda method, logits, labels: logits[labels > 0],
    "a mask as an index": lambda method, logits, labels: logits.index_put((labels > 0,), logits[0]),
    "a tensor of the host": lambda method, logits, labels: logits * torch.ones(6),
    "a number of the host": lambda method, logits, labels: logits * torch.tensor(2.0),
    "a copy to the device": lambda method, logits, labels: torch.tensor([0.5], device=logits.device),
    "a copy to the host": lambda method, logits, labels: logits.cpu(),
    "a generator": lambda method, logits, labels: torch.rand(
        3, device=logits.device, generator=torch.Generator()
    ),
    "a decomposition": lambda method, logits, labels: torch.linalg.inv(logits.T @ logits),
    "a new tensor in its place": in_its_place,
    "a count of the host": counted,
}
REFUSED = (
    NotRecordable,
    DataDependentOutputException,
    DynamicOutputShapeException,
    AssertionError,  # by what the step's objects hold
)


@pytest.mark.parametrize("fault", FAULTS)
def test_these_tests_find_what_no_graph_can_record(monkeypatch, fault):
    def after_step(method, stage, network, output, labels):
        FAULTS[fault](method, output.logits, labels)

    monkeypatch.setattr(METHODS["plain"], "after_step", after_step)
    with pytest.raises(REFUSED):
        run_steps(monkeypatch, "cuda", configured("plain"))


class FaultyBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.ones(())


def test_they_find_it_in_the_backward_pass_too(monkeypatch):
    def loss(method, stage, network, output, labels):
        return {"faulty": FaultyBackward.apply(output.logits).mean()}

    monkeypatch.setattr(METHODS["plain"], "loss", loss)
    with pytest.raises(NotRecordable):
        run_steps(monkeypatch, "meta", configured("plain"))


def test_the_network_runs_in_bfloat16_there(monkeypatch):
    types = set()

    def after_step(method, stage, network, output, labels):
        types.add((output.direct_feature.dtype, output.logits.dtype))

    monkeypatch.setattr(METHODS["plain"], "after_step", after_step)
    run_steps(monkeypatch, "cuda", configured("plain"))
    assert types == {(torch.bfloat16, torch.float32)}
