"""A step of training: the same as an obvious loop, and as a graph the same as without."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch

from oltr.data.augment import Augment
from oltr.data.batches import TrainBatch
from oltr.training import task
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.step import WARM_UP, Step, Work
from oltr.training.task import compiled, make_optimizer, recorded
from tests.helpers.tiny import tiny_config

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def batches(number, device="cpu", classes=6, size=8):
    random = torch.Generator().manual_seed(1)
    for _ in range(number):
        pixels = torch.randint(0, 256, (size, 32, 32, 3), generator=random, dtype=torch.uint8)
        draws = torch.rand(size, 16, generator=random)
        labels = torch.randint(0, classes, (size,), generator=random)
        yield TrainBatch(pixels.permute(0, 3, 1, 2).to(device), draws.to(device), labels.to(device))


def work(method_name="oltr", device="cpu", precision="float32", **options):
    config = tiny_config(method_name)
    method = build_method(config, torch.full((6,), 5))
    network = build_network(config, method, 2)
    method.on_stage_start(2, network, lambda: torch.randn(6, network.direct_feature.dims))
    network.to(device, memory_format=torch.channels_last).train()
    optimizer = make_optimizer(network, config.stage(2), fused=device == "cuda")
    augment = Augment(config.data, device)
    return Work(method, 2, network, augment, optimizer, precision=precision, **options)


def weights(done):
    return {name: tensor.detach().cpu().clone() for name, tensor in done.network.state_dict().items()}


@pytest.mark.parametrize("method_name", ["oltr", "oltr-paper"])
def test_a_step_is_augment_forward_backward_update(method_name):
    torch.manual_seed(0)
    ours = work(method_name)
    network = copy.deepcopy(ours.network)
    optimizer = make_optimizer(network, tiny_config(method_name).stage(2), fused=False)
    step, losses = Step(ours, graph=False), []
    for batch in batches(3):
        step(batch)
        views = ours.augment.train(batch.pixels, batch.draws)
        output = network(views.contiguous(memory_format=torch.channels_last))
        loss = sum(ours.method.loss(2, network, output, batch.labels).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ours.method.after_step(2, network, output, batch.labels)
        losses.append(float(loss.detach()))
    expected = network.state_dict()
    for name, tensor in weights(ours).items():
        torch.testing.assert_close(tensor, expected[name], msg=name)
    assert float(ours.loss_sum) == pytest.approx(sum(losses), rel=1e-5)


def test_roles_learn_at_their_own_rates():
    stage = tiny_config("oltr").stage(2)
    groups = {group["role"]: group for group in work().optimizer.param_groups}
    assert groups["memory"]["base_lr"] == stage.memory_lr
    assert groups["classifier"]["base_lr"] == stage.classifier_lr
    assert groups["backbone"]["base_lr"] == groups["attention"]["base_lr"] == stage.lr


def test_only_large_images_on_a_gpu_are_worth_compiling(monkeypatch):
    monkeypatch.setattr(task, "find_spec", lambda name: name)
    large, small = (configure("glyphs", "oltr", image_size=size) for size in (96, 95))
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert compiled(large, gpu) and not compiled(small, gpu) and not compiled(large, cpu)
    assert compiled(tiny_config(compile="always"), cpu)
    assert not compiled(dataclasses.replace(large, compile="never"), gpu)
    monkeypatch.setattr(task, "find_spec", lambda name: None)
    assert not compiled(large, gpu)  # the compiler needs triton there


def test_one_gpu_replays_a_graph_unless_the_step_is_to_run_as_written(monkeypatch):
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert recorded(tiny_config(), gpu) and recorded(tiny_config(compile="always"), gpu)
    assert not recorded(tiny_config(compile="never"), gpu) and not recorded(tiny_config(), cpu)
    monkeypatch.setattr(task, "world_size", lambda: 2)
    assert not recorded(tiny_config(), gpu) and not recorded(tiny_config(compile="always"), gpu)


@needs_gpu
@pytest.mark.parametrize("method_name", ["oltr", "oltr-paper"])
def test_a_graph_gives_the_same_weights_and_follows_the_learning_rate(method_name):
    results = []
    for graph in (False, True):
        torch.manual_seed(0)
        ours = work(method_name, "cuda")
        step = Step(ours, graph)
        for number, batch in enumerate(batches(WARM_UP + 6, "cuda")):
            for group in ours.optimizer.param_groups:
                group["lr"] = group["base_lr"] * (0.1 if number > WARM_UP + 3 else 1.0)
            step(batch)
        results.append(weights(ours) | {"loss": ours.loss_sum.cpu()})
    for name, tensor in results[0].items():
        torch.testing.assert_close(results[1][name], tensor, rtol=1e-4, atol=1e-5, msg=name)


@needs_gpu
def test_a_step_never_waits_for_the_device():
    torch.manual_seed(0)
    step = Step(work("oltr", "cuda", "auto"), graph=False)
    data = list(batches(3, "cuda"))
    step(data[0])
    torch.cuda.set_sync_debug_mode("error")
    try:
        step(data[1])
        step(data[2])
    finally:
        torch.cuda.set_sync_debug_mode("default")
