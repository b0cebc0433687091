"""A step of training: the same as an obvious loop, and as a graph the same as without."""

from __future__ import annotations

import copy
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from oltr.config import StageConfig
from oltr.data.augment import Augment
from oltr.data.batches import TrainBatch
from oltr.training import step as step_module
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.ema import WeightAverage
from oltr.training.optimizer import make_optimizer
from oltr.training.schedule import LearningRates
from oltr.training.step import WARM_UP, BatchLoss, Step, compiled, recorded
from tests.helpers.gpu import needs_gpu
from tests.helpers.tiny import tiny_config


def batches(number, device="cpu", classes=6, size=8):
    random = torch.Generator().manual_seed(1)
    for _ in range(number):
        pixels = torch.randint(0, 256, (size, 32, 32, 3), generator=random, dtype=torch.uint8)
        draws = torch.rand(size, 16, generator=random)
        labels = torch.randint(0, classes, (size,), generator=random)
        yield TrainBatch(pixels.permute(0, 3, 1, 2).to(device), draws.to(device), labels.to(device))


def make_step(method_name="oltr", device="cpu", precision="float32", ema=0.0, graph=False, stage=None):
    config = tiny_config(method_name)
    method = build_method(config, torch.full((6,), 5))
    network = build_network(config, method, 2)
    method.on_stage_start(2, network, lambda: torch.randn(6, network.direct_feature.dims))
    method.to(device)
    network.to(device).to(memory_format=torch.channels_last).train()
    optimizer = make_optimizer(network, stage or config.stage(2), fused=device == "cuda")
    batch_loss = BatchLoss(method, 2, network, Augment(config.data, device), precision=precision)
    average = WeightAverage(network, ema) if ema else None
    return Step(batch_loss, optimizer, average=average, graph=graph)


def weights(step):
    networks = {"": step.batch_loss.network} | ({"average ": step.average.network} if step.average else {})
    return {
        prefix + name: tensor.detach().cpu().clone()
        for prefix, network in networks.items()
        for name, tensor in network.state_dict().items()
    }


@pytest.mark.parametrize("method_name", ["oltr", "oltr-paper"])
def test_a_step_is_augment_forward_backward_update(method_name):
    torch.manual_seed(0)
    step = make_step(method_name)
    method, network = step.batch_loss.method, copy.deepcopy(step.batch_loss.network)
    optimizer = make_optimizer(network, tiny_config(method_name).stage(2), fused=False)
    losses = []
    for batch in batches(3):
        step(batch)
        views = step.batch_loss.augment.train(batch.pixels, batch.draws)
        output = network(views.contiguous(memory_format=torch.channels_last))
        loss = sum(method.loss(2, network, output, batch.labels).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        method.after_step(2, network, output, batch.labels)
        losses.append(float(loss.detach()))
    expected = network.state_dict()
    for name, tensor in weights(step).items():
        torch.testing.assert_close(tensor, expected[name], msg=name)
    assert float(step.loss_sum) == pytest.approx(sum(losses), rel=1e-5)


def test_every_parameter_that_learns_is_inside_the_module_that_ddp_wraps():
    step = make_step("oltr")
    inside = {id(parameter) for parameter in step.batch_loss.parameters()}
    assert inside >= {id(p) for group in step.optimizer.param_groups for p in group["params"]}


def test_only_large_images_on_a_gpu_are_worth_compiling(monkeypatch):
    monkeypatch.setattr(step_module, "find_spec", lambda name: name)
    large, small = (configure("glyphs", "oltr", image_size=size) for size in (96, 95))
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert compiled(large, gpu) and not compiled(small, gpu) and not compiled(large, cpu)
    assert compiled(tiny_config(compile="always"), cpu)
    assert not compiled(dataclasses.replace(large, compile="never"), gpu)
    monkeypatch.setattr(step_module, "find_spec", lambda name: None)
    assert not compiled(large, gpu)  # the compiler needs triton there


def test_one_gpu_replays_a_graph_unless_the_step_is_to_run_as_written(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert recorded(tiny_config(), gpu) and recorded(tiny_config(compile="always"), gpu)
    assert not recorded(tiny_config(compile="never"), gpu) and not recorded(tiny_config(), cpu)
    monkeypatch.setattr(step_module, "world_size", lambda: 2)
    assert not recorded(tiny_config(), gpu) and not recorded(tiny_config(compile="always"), gpu)


STAGES = {
    "sgd": StageConfig(epochs=2, schedule="cosine", lr_every="step", lr=0.01, classifier_lr=0.02),
    "adamw": StageConfig(
        epochs=2,
        schedule="cosine",
        lr_every="step",
        optimizer="adamw",
        layer_decay=0.6,
        lr=1e-3,
        classifier_lr=1e-3,
        memory_lr=1e-3,
        weight_decay=0.05,
    ),
}


@needs_gpu
@pytest.mark.parametrize("optimizer", STAGES)
@pytest.mark.parametrize("method_name", ["oltr", "oltr-paper"])
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_a_graph_recorded_once_gives_the_same_weights_at_every_rate(monkeypatch, optimizer, method_name, ema):
    # Else two runs without a graph differ as well.
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    stage = STAGES[optimizer]
    steps, results = WARM_UP + 6, []
    for graph in (False, True):
        torch.manual_seed(0)
        step, graphs = make_step(method_name, "cuda", ema=ema, graph=graph, stage=stage), set()
        rates = LearningRates(step.optimizer, stage, torch.device("cuda"))
        for epoch in range(2):
            rates.start_epoch(epoch, steps)
            for number, batch in enumerate(batches(steps, "cuda")):
                rates.set(number)
                step(batch)
                graphs.add(id(step.recorded))
        assert len(graphs) == (2 if graph else 1)  # none yet, and the one
        results.append(weights(step) | {"loss": step.loss_sum.cpu()})
    for name, tensor in results[0].items():
        torch.testing.assert_close(results[1][name], tensor, rtol=0, atol=0, msg=name)


@needs_gpu
def test_threads_that_read_images_do_not_break_the_recording():
    torch.manual_seed(0)
    step, recorded = make_step("oltr", "cuda", graph=True), threading.Event()
    *warm_up, first, second = batches(WARM_UP + 2, "cuda")
    for batch in warm_up:
        step(batch)

    def read():
        held = []  # else torch would give the same memory again and ask the GPU for none
        while not recorded.is_set() and len(held) < 1000:
            held.append(torch.zeros(2**20, dtype=torch.uint8).pin_memory())

    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read)
        try:
            step(first)
        finally:
            recorded.set()
        reading.result()
    step(second)
    assert step.recorded is not None and torch.isfinite(step.loss_sum)


@needs_gpu
@pytest.mark.parametrize("optimizer", STAGES)
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_a_step_never_waits_for_the_device(optimizer, ema):
    torch.manual_seed(0)
    stage = STAGES[optimizer]
    step = make_step("oltr", "cuda", "auto", ema, stage=stage)
    rates = LearningRates(step.optimizer, stage, torch.device("cuda"))
    rates.start_epoch(0, 3)
    data = list(batches(3, "cuda"))
    step(data[0])
    torch.cuda.set_sync_debug_mode("error")
    try:
        for number in (1, 2):
            rates.set(number)
            step(data[number])
    finally:
        torch.cuda.set_sync_debug_mode("default")
