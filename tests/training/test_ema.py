"""Averaged weights: against a slow loop, and through a whole run."""

from __future__ import annotations

import csv
import dataclasses

import pytest
import torch
from safetensors.torch import load_file

from oltr.data.pack import open_pack
from oltr.training.build import build_method, build_network
from oltr.training.ema import WeightAverage
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.train import train
from tests.helpers.tiny import tiny_config
from tests.helpers.training import stop_at

ON_CPU = {"accelerator": "cpu"}


def a_network():
    config = tiny_config("oltr")
    return build_network(config, build_method(config, torch.full((6,), 5)), 2)


def averaging(ema, **changes):
    config = tiny_config("oltr", **changes)
    stages = {f"stage{n}": dataclasses.replace(config.stage(n), ema=ema) for n in (1, 2)}
    return dataclasses.replace(config, **stages)


@pytest.mark.parametrize("decay", [0.3, 0.9])
def test_the_average_equals_a_loop(decay):
    network = a_network()
    average = WeightAverage(network, decay)
    expected = {name: tensor.double().clone() for name, tensor in network.state_dict().items()}
    random = torch.Generator().manual_seed(0)
    for step in range(5):
        with torch.no_grad():
            for tensor in network.state_dict().values():
                if tensor.is_floating_point():
                    tensor.add_(torch.randn(tensor.shape, generator=random))
                else:
                    tensor.copy_(torch.randint(0, 2, tensor.shape, generator=random))
        average.update()
        for name, tensor in network.state_dict().items():
            kept = min(decay, (1 + step) / (10 + step))
            mean = kept * expected[name] + (1 - kept) * tensor.double()
            expected[name] = mean if tensor.is_floating_point() else tensor.double()
    averaged = average.network.state_dict()
    assert averaged.keys() == expected.keys()
    assert {tensor.dtype for tensor in averaged.values()} >= {torch.bool, torch.int64, torch.float32}
    for name, tensor in averaged.items():
        torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-5, atol=1e-5, msg=name)


def test_a_slow_average_forgets_the_start_within_few_steps():
    network = a_network()
    average = WeightAverage(network, 0.999)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1)
    for _ in range(20):
        average.update()
    for mean, parameter in zip(average.network.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mean, parameter, rtol=0, atol=1e-5)


@pytest.mark.parametrize("before", [0, 7, 100_000])
def test_an_average_goes_on_from_the_steps_that_were_made(before):
    network = a_network()
    average = WeightAverage(network, 0.999, before)
    with torch.no_grad():
        network.backbone.net.conv1.weight.add_(1)
    start = average.network.backbone.net.conv1.weight.clone()
    average.update()
    moved = average.network.backbone.net.conv1.weight - start
    expected = 1 - min(0.999, (1 + before) / (10 + before))
    torch.testing.assert_close(moved, torch.full_like(moved, expected), rtol=1e-3, atol=1e-6)


def test_the_average_is_apart_from_the_network():
    network = a_network().train()
    average = WeightAverage(network, 0.5)
    assert not average.network.training and network.training
    assert not any(parameter.requires_grad for parameter in average.network.parameters())
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_without_decay_the_average_is_the_last_step(pack, tmp_path):
    manifest = open_pack(pack).manifest
    for name, config in (("none", averaging(0.0)), ("tiny", averaging(1e-12))):
        train(config, manifest, tmp_path / name, TrainOptions(**ON_CPU))
    # Of stage 1: the second one makes more of what the average rounds.
    none, tiny = (load_file(RunFolder(tmp_path / name).stage_weights(1)) for name in ("none", "tiny"))
    for name, tensor in none.items():
        torch.testing.assert_close(tiny[name], tensor, msg=name)


def test_the_averaged_weights_are_kept_and_handed_on(pack, tmp_path):
    manifest, config = open_pack(pack).manifest, averaging(0.9, keep="last")
    network, *_ = train(config, manifest, tmp_path / "run", TrainOptions(**ON_CPU))
    folder = RunFolder(tmp_path / "run")
    saved = folder.load_checkpoint()
    kept = load_file(folder.model)
    assert all(torch.equal(kept[name], tensor) for name, tensor in saved["average"].items())
    assert all(torch.equal(kept[name], tensor) for name, tensor in network.state_dict().items())
    assert not all(torch.equal(kept[name], tensor) for name, tensor in saved["network"].items())
    # Stage 2 begins with the averages of stage 1, and its own follow the weights from there.
    weight = "backbone.net.conv1.weight"
    start = load_file(folder.stage_weights(1))[weight]
    assert 0 < (kept[weight] - start).norm() < (saved["network"][weight] - start).norm()


@pytest.mark.parametrize("at", [4, 12, 20, 30])  # of 32 steps: in each epoch
def test_an_interrupted_run_with_averages_resumes_exactly(pack, tmp_path, monkeypatch, at):
    manifest, config = open_pack(pack).manifest, averaging(0.9)
    config = dataclasses.replace(
        config,
        stage1=dataclasses.replace(config.stage1, schedule="cosine", lr_every="step", warmup_epochs=1),
    )
    train(config, manifest, tmp_path / "straight", TrainOptions(**ON_CPU))
    stop_at(monkeypatch, at)
    with pytest.raises(KeyboardInterrupt):
        train(config, manifest, tmp_path / "run", TrainOptions(**ON_CPU))
    train(config, manifest, tmp_path / "run", TrainOptions(resume=True, **ON_CPU))
    folders = [RunFolder(tmp_path / name) for name in ("straight", "run")]
    straight, resumed = (load_file(folder.model) for folder in folders)
    assert [name for name in straight if not torch.equal(straight[name], resumed[name])] == []
    rows = [list(csv.reader(folder.metrics.open())) for folder in folders]
    assert [row[:-2] for row in rows[0]] == [row[:-2] for row in rows[1]]  # all but the time it took
