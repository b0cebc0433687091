"""The recipes of the printed schedule against the paper's supplement, and a small run of each."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
import torch

from oltr.config import RunConfig
from oltr.data.pack import open_pack
from oltr.methods import METHODS
from oltr.nn.network import Network
from oltr.recipes import load_recipe, resolve
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.options import TrainOptions

# The supplement's table of major hyper-parameters: initial rate, epochs, drop every 10 epochs.
TABLE = {"imagenet-lt": (0.1, 30), "places-lt": (0.01, 30), "ms1m-lt": (0.01, 30)}
BACKBONES = {"imagenet-lt": "resnet10", "places-lt": "resnet152", "ms1m-lt": "resnet50"}
# Methods of the paper that learn everything at once.
AT_ONCE = ["plain", "class-aware", "lifted", "focal", "range", "oltr", "oltr-paper"]


def printed(data: str, method: str = "oltr-paper") -> RunConfig:
    return resolve(f"{data}-printed", method, settings=METHODS[method].all_settings())


@pytest.mark.parametrize("data", TABLE)
def test_the_printed_table_line_by_line(data):
    lr, epochs = TABLE[data]
    config = printed(data)
    stages = [config.stage(number) for number in (1, 2) if config.stage(number).epochs]
    assert len(stages) == (2 if data == "places-lt" else 1)
    for stage in stages:
        assert (stage.epochs, stage.lr, stage.classifier_lr) == (epochs, lr, lr)
        factors = [stage.lr_factor(epoch) for epoch in range(epochs)]
        assert factors == [1.0] * 10 + [0.1] * 10 + [0.01] * 10
    assert stages[-1].memory_lr == lr and stages[-1].sampler == "class-aware"


@pytest.mark.parametrize("data", TABLE)
def test_network_images_and_threshold_as_printed(data):
    config, recipe = printed(data), load_recipe(f"{data}-printed")
    assert config.backbone == BACKBONES[data] and config.weights is None
    images = config.data
    assert (images.resize, images.stored_size) == ("stretch", 256)
    assert (images.crop, images.image_size, images.flip, images.jitter) == ("random", 224, True, 0.4)
    assert (config.decision.score, config.decision.threshold) == ("softmax", 0.1)
    assert config.settings["fc"] is None  # v_direct is the pooled map
    assert recipe.method == ("plain" if data == "ms1m-lt" else "oltr-paper")


def test_places_keeps_its_convolutions_in_the_second_stage():
    config = printed("places-lt")
    assert (config.stage1.sampler, config.stage1.frozen) == ("shuffle", ())
    assert config.stage2.frozen == ("backbone",)
    released = resolve("places-lt", "oltr")
    assert (released.stage1.lr, released.stage2.lr) == (
        0.001,
        0.0001,
    )  # the recipe of our tables is as it was


@pytest.mark.parametrize("data", ["imagenet-lt", "ms1m-lt"])
def test_one_stage_of_every_method_that_can(data):
    for method in METHODS:
        config = printed(data, method)
        if method == "logit-adjusted":  # the second is a fit of its head
            assert (config.stage1.epochs, config.stage2.epochs) == (29, 1)
        elif "backbone" in config.stage2.frozen or method == "ldam-drw":
            assert (config.stage1.epochs, config.stage2.epochs) == (20, 10), method
        else:
            assert (config.stage1.epochs, config.stage2.epochs) == (0, 30), method
    assert {method for method in AT_ONCE if printed(data, method).stage1.epochs} == set()


SMALL = (
    "backbone=resnet10_half",
    "data.image_size=32",
    "data.stored_size=32",
    "data.flip=false",
    "precision=float32",
    *(f"stage{number}.batch_size=8" for number in (1, 2)),
    *(f"stage{number}.{name}=0.01" for number in (1, 2) for name in ("lr", "classifier_lr", "memory_lr")),
)


@pytest.mark.parametrize(("data", "epochs"), [("imagenet-lt", [3]), ("places-lt", [1, 2])])
def test_a_small_run_trains_end_to_end(data, epochs, pack, tmp_path):
    config = configure(f"{data}-printed", "oltr-paper", epochs=epochs, changes=SMALL)
    train_run(config, open_pack(pack).manifest, tmp_path / "run", TrainOptions(accelerator="cpu"), str(pack))
    with (tmp_path / "run" / "metrics.csv").open(encoding="utf-8") as file:
        rows = [(int(row["stage"]), int(row["epoch"])) for row in csv.DictReader(file)]
    assert rows == ([(2, 1), (2, 2), (2, 3)] if len(epochs) == 1 else [(1, 1), (2, 1), (2, 2)])
    run = TrainedRun(tmp_path / "run")
    memory = run.network.head.meta.memory
    assert memory.known.all() and memory.centroids.abs().sum(dim=1).min() > 0
    assert run.report.closed.overall is not None and run.rule.threshold == 0.1
    start = build_network(config, build_method(config, torch.ones(6)), 2)
    learned = {name for name, weight in start.named_parameters() if _moved(weight, run.network, name)}
    assert {name for name, _ in start.named_parameters() if "att" in name or "head" in name} <= learned
    assert any(name.startswith("backbone") for name in learned)


def _moved(weight: torch.Tensor, network: Network, name: str) -> bool:
    return not torch.equal(weight, network.get_parameter(name).cpu())


def test_the_docs_tell_both_schedules():
    page = (Path(__file__).parents[1] / "docs" / "concepts.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line]
    told = {line[0]: line[1:] for line in lines}
    for name, data in {"ImageNet-LT": "imagenet-lt", "Places-LT": "places-lt"}.items():
        printed_cell, released = told[name]
        assert _stages(printed_cell) == _of(resolve(f"{data}-printed", "oltr-paper"))
        assert _stages(released) == _of(resolve(data, "oltr"))


def _stages(words: str) -> list[tuple[int, float]]:
    """Epochs and rate of each stage, as a cell of the table tells them."""
    found = re.findall(r"(\d+)(?: epochs)? at ([\d.]+)", words)
    return [(int(epochs), float(lr)) for epochs, lr in found]


def _of(config: RunConfig) -> list[tuple[int, float]]:
    stages = [config.stage(number) for number in range(1, config.num_stages + 1)]
    return [(stage.epochs, stage.lr) for stage in stages if stage.epochs]
