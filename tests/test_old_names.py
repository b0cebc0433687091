"""Run folders, recipes and `--set` under the names of earlier versions."""

import dataclasses

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.old_names import current_values, current_weights, run_values
from oltr.runs.trained_run import TrainedRun
from oltr.training.configure import configure
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.train import train
from tests.helpers.tiny import tiny_config


def test_attention_on_the_last_map_is_what_there_is():
    assert current_values({"settings": {"attention_stage": -1, "fc": 3}}) == {"settings": {"fc": 3}}
    assert configure("glyphs", "oltr", changes=["settings.attention_stage=-1"]) == configure("glyphs", "oltr")


@pytest.mark.parametrize("stage", [0, 2, -2])
def test_attention_on_another_map_is_refused(stage):
    with pytest.raises(UserError, match=f"settings.attention_stage is {stage}"):
        configure("glyphs", "oltr", changes=[f"settings.attention_stage={stage}"])


def test_an_own_recipe_may_still_name_it(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("base: glyphs\nmethods: {oltr: {settings: {attention_stage: -1, fc: 8}}}")
    assert configure(str(recipe), "oltr").settings["fc"] == 8


def test_frequencies_of_mixed_images_are_those_of_training_images():
    same = configure("glyphs", "oltr2", changes=["settings.mixed_prior=images"])
    assert same == configure("glyphs", "oltr2") and "mixed_prior" not in same.settings
    with pytest.raises(UserError, match="mixed_prior is 'labels'"):
        configure("glyphs", "oltr2", changes=["settings.mixed_prior=labels"])


def test_numbers_that_yaml_reads_as_text_are_numbers():
    old = {"within_weight": "5e-5", "between_weight": "1e-4", "largest": 2, "margin": 100.0}
    assert current_values({"settings": old})["settings"] == configure("glyphs", "range").settings


def test_the_counts_in_a_head_are_left_out():
    state = {"head.classifier.weight": torch.zeros(2), "head.train_counts": torch.ones(2)}
    assert list(current_weights(state)) == ["head.classifier.weight"]


def test_a_run_whose_head_held_the_counts_is_opened_and_continued(pack, tmp_path):
    config, manifest = tiny_config("balanced-softmax", epochs=(1, 1)), open_pack(pack).manifest
    network, *_ = train(config, manifest, tmp_path / "run", TrainOptions())
    folder = RunFolder(tmp_path / "run")
    counts = torch.tensor(manifest.train_counts()).float()
    for file in (folder.model, folder.stage_weights(1), folder.stage_weights(2)):
        weights = load_file(file)
        assert "head.train_counts" not in weights
        save_file(weights | {"head.train_counts": counts}, file)
    last = torch.load(folder.last, weights_only=True)
    last["network"]["head.train_counts"] = counts
    torch.save(last, folder.last)
    expected = {name: value.cpu() for name, value in network.state_dict().items()}

    def check(found):
        assert found.state_dict().keys() == expected.keys()
        assert all(torch.equal(value.cpu(), expected[name]) for name, value in found.state_dict().items())

    check(TrainedRun(folder.path).network)
    check(train(config, manifest, folder.path, TrainOptions(resume=True))[0])
    folder.stage_weights(2).unlink()  # the checkpoint is next
    check(train(config, manifest, folder.path, TrainOptions(resume=True))[0])


def test_a_run_of_before_the_attention_had_two_starts_is_opened_and_continued(pack, tmp_path):
    config, manifest = tiny_config("oltr", epochs=(1, 1)), open_pack(pack).manifest
    train(config, manifest, tmp_path / "run", TrainOptions())
    folder = RunFolder(tmp_path / "run")
    facts = yaml.safe_load((folder.path / "run.yaml").read_text())
    assert facts["config"]["settings"].pop("attention_start") == "zero"
    folder.write(facts)
    assert folder.config().settings["attention_start"] == "zero"
    assert TrainedRun(folder.path).network.attention.self_attention.out.bias is not None
    train(config, manifest, folder.path, TrainOptions(resume=True))  # not refused as another configuration
    other = dataclasses.replace(config, settings=config.settings | {"attention_start": "released"})
    with pytest.raises(UserError, match="attention_start: zero → released"):
        train(other, manifest, folder.path, TrainOptions(resume=True))


def test_a_run_of_before_class_means_were_added_to_trained_classifiers_is_continued_without(pack, tmp_path):
    settings = METHODS["oltr2"].all_settings({"class_means": "none"})
    config = tiny_config("oltr2", epochs=(1,), stage2=None, settings=settings)
    folder, manifest = RunFolder(tmp_path / "run"), open_pack(pack).manifest
    train(config, manifest, folder.path, TrainOptions())
    facts = yaml.safe_load((folder.path / "run.yaml").read_text())
    assert facts["config"]["settings"].pop("class_means") == "none"
    folder.write(facts)
    assert folder.config().settings["class_means"] == "none"
    train(config, manifest, folder.path, TrainOptions(resume=True))


def test_a_setting_that_came_later_is_not_given_to_recipes_and_other_methods():
    assert current_values({"settings": {"attention_form": "released"}}) == {
        "settings": {"attention_form": "released"}
    }
    assert run_values({"settings": {}, "seed": 3}) == {"settings": {}, "seed": 3}
    given = {"settings": {"attention_form": "pointwise", "attention_start": "released"}}
    assert run_values(given) == given
