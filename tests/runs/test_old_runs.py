"""Run folders, recipes and options of version 0.1 still work: `fixtures/run-0.1` was written by it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image

from oltr.config import RunConfig, build
from oltr.data.augment import Augment
from oltr.data.pack import open_pack
from oltr.old_names import current_values
from oltr.openset import RejectionRule
from oltr.recipes import resolve
from oltr.runs.own_data import open_for
from oltr.runs.trained_run import TrainedRun
from oltr.training.configure import configure
from tests.helpers.tiny import tiny_pack

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def folder(tmp_path) -> Path:
    return shutil.copytree(FIXTURES / "run-0.1", tmp_path / "run")


def assert_holds(data, kept):
    """Every value that was there is there; later versions only add names."""
    if isinstance(kept, dict):
        for name, value in kept.items():
            assert_holds(data[name], value)
    elif isinstance(kept, list):
        for some, value in zip(data, kept, strict=True):
            assert_holds(some, value)
    else:
        assert data == kept


def test_an_old_run_gives_its_old_report_under_its_old_rule(folder):
    run = TrainedRun(folder)
    assert run.config.stage1.sampler == run.config.stage2.sampler == "shuffle"
    assert run.config.stage1.lr_milestones == {1: 0.5}
    kept = json.loads((folder / "report.json").read_text())
    assert kept == run.report.data
    assert_holds(run.under(RejectionRule("softmax", 0.1)).measure().data, kept)
    assert (
        run.rule.unknown_rate == 0.05 and run.rule.rejects(run.scored("val").values).double().mean() <= 0.05
    )


def test_its_weights_load_and_give_the_outputs_that_it_kept(folder, tmp_path):
    run = TrainedRun(folder, tiny_pack(tmp_path / "data"))
    images = open_for(run, run.manifest, ["test"])["test"]
    pixels = next(images.batches([range(len(images))], run.device, 0)).cpu()
    with torch.no_grad():
        logits = run.network(Augment(run.config.data).evaluate(pixels).to(run.device)).logits.cpu()
    torch.testing.assert_close(logits, run.outputs["test"].logits, rtol=1e-3, atol=1e-3)
    assert len(run.predict(_files(tmp_path))) == 2


def test_the_settings_of_an_old_oltr_run_are_read_under_their_new_names():
    values = yaml.safe_load((FIXTURES / "run-0.1-oltr.yaml").read_text())
    config = build(RunConfig, current_values(values["config"]))
    assert config.settings["attention_form"] == "pointwise"
    assert config.stage1.lr_milestones == {1: 0.5} and config.stage2.sampler == "class-aware"


def test_own_recipes_and_options_with_old_names(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        "run: {stage1: {epochs: 4, drops: {2: 0.1}, sampler: plain}, stage2: {epochs: 2}}\n"
        "methods: {oltr: {settings: {attention_form: any}, stage2: {drops: {1: 0.3}}}}\n"
    )
    config = resolve(str(recipe), "oltr")
    assert config.stage1.lr_milestones == {2: 0.1} and config.stage1.sampler == "shuffle"
    assert config.settings["attention_form"] == "pointwise" and config.stage2.lr_milestones == {1: 0.3}
    changed = configure("glyphs", "oltr", changes=["stage1.drops={3: 0.5}", "stage2.sampler=plain"])
    assert changed.stage1.lr_milestones == {3: 0.5} and changed.stage2.sampler == "shuffle"


def _files(folder: Path) -> list[Path]:
    files = []
    for number, pixels in enumerate(open_pack(folder / "data" / "tiny.pack").images[:2]):
        files.append(folder / f"{number}.png")
        Image.fromarray(pixels).save(files[-1])
    return files
