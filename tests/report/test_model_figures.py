"""From a run folder to the figures of its network: which images, from where, and what is refused."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from oltr.report.model_figures import activation_averages_of, attention_of, infused_of, method_of
from oltr.report.run_network import RunNetwork
from oltr.runs.run_outputs import load_network
from oltr.runs.views import all_pictures, chosen_images
from PIL import Image

from oltr.console import Console
from oltr.data.images import read_image
from oltr.data.pack import open_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.figures.explanation_figure import explanation_figure
from oltr.report import run_network
from oltr.runs.explain.explain import explain
from oltr.runs.explain.explanation import Missing
from oltr.runs.explain.training_sample import training_sample
from oltr.runs.train_run import train_run
from oltr.training.options import FitOptions
from oltr.training.run_folder import RunFolder
from tests.helpers.pictures import class_folders
from tests.helpers.tiny import tiny_config

QUIET = Console(quiet=True)
FIGURES = [attention_of, infused_of, activation_averages_of]


def opened(folder: RunFolder) -> RunNetwork:
    return RunNetwork(folder, QUIET)


def train(pack: Path, folder: Path, method: str = "oltr", **settings) -> RunFolder:
    """A run of one epoch a stage."""
    config = tiny_config(method, epochs=(1, 1))
    config = tiny_config(method, epochs=(1, 1), settings=config.settings | settings)
    train_run(config, open_pack(pack).manifest, folder, QUIET, FitOptions(accelerator="cpu"), str(pack))
    return RunFolder(folder)


@pytest.fixture(scope="module")
def trained(pack, tmp_path_factory) -> RunFolder:
    """A run with attention and memory; read-only."""
    return train(pack, tmp_path_factory.mktemp("runs") / "oltr")


@pytest.fixture(scope="module")
def other(pack, tmp_path_factory) -> RunFolder:
    """One with self-attention alone, in the stage before the last, and a layer before v_direct; read-only."""
    folder = tmp_path_factory.mktemp("runs") / "other"
    return train(pack, folder, attention="self", attention_stage=-2, fc=7)


def test_one_image_of_each_kind(trained, pack):
    figure = attention_of(opened(trained))
    assert "2×2" in figure.get_suptitle() and len(figure.axes) == 4 * 3
    names = [axes.get_xlabel() for axes in figure.axes[::4]]
    assert [name.split("\n")[1] for name in names] == ["(medium-shot)", "(few-shot)", "(open)"]
    table = open_pack(pack).manifest.rows("open")
    assert names[-1].split("\n")[0] in set(table["label"])
    again = attention_of(opened(trained))
    assert [axes.get_xlabel() for axes in again.axes] == [axes.get_xlabel() for axes in figure.axes]


def test_concepts_and_averages(trained):
    run = opened(trained)
    concepts, averages = infused_of(run), activation_averages_of(run)
    assert "24 of 32 px" in concepts.get_suptitle() and "all 64 training images" in concepts.get_suptitle()
    assert len(concepts.axes) == 4 * 3
    assert len(averages.axes) == 3 * 3 and "means of 6 images" in averages.get_suptitle()
    first = [axes.get_title() for axes in concepts.axes[1::4]]
    assert [axes.get_xlabel().split(":")[0] for axes in averages.axes[1::3]] == first
    for figure in (concepts, averages):
        figure.savefig(io.BytesIO())


def test_another_kind_of_network(other):
    run = opened(other)
    attention, concepts = attention_of(run), infused_of(run)
    assert "4×4" in attention.get_suptitle()
    assert "settings.attention is self" in attention.axes[2].texts[0].get_text()
    assert "whole" in concepts.get_suptitle()
    neurons = [int(axes.get_title().split()[1]) for axes in concepts.axes if axes.get_title()]
    assert max(neurons) < 7
    activation_averages_of(run)


@pytest.mark.parametrize("figure", FIGURES)
def test_what_a_run_has_not(pack, tmp_path, trained, figure):
    with pytest.raises(UserError, match=r"attention|memory"):
        figure(opened(train(pack, tmp_path / "plain", "plain")))
    run = RunFolder(shutil.copytree(trained.path, tmp_path / "run"))
    file = run.path / "run.yaml"
    file.write_text(file.read_text().replace(f"source: {pack}", f"source: {tmp_path / 'gone.pack'}"))
    with pytest.raises(UserError, match="are needed"):
        figure(opened(run))
    with pytest.raises(UserError, match="not a run folder"):
        figure(opened(RunFolder(tmp_path / "nowhere")))


def test_the_method_needs_no_images(trained, pack, tmp_path):
    run = RunFolder(shutil.copytree(trained.path, tmp_path / "run"))
    file = run.path / "run.yaml"
    file.write_text(file.read_text().replace(f"source: {pack}", f"source: {tmp_path / 'gone.pack'}"))
    total = sum(parameter.numel() for parameter in load_network(trained).parameters())
    assert f"{total / 1e6:.2f} million parameters" in method_of(opened(run)).get_suptitle()


def test_figures_of_one_run_share_its_network_and_one_pass(trained, monkeypatch):
    made = []
    for name in ("load_network", "training_sample"):
        whole = getattr(run_network, name)
        monkeypatch.setattr(
            run_network, name, lambda *given, name=name, whole=whole: made.append(name) or whole(*given)
        )
    run = opened(trained)
    for figure in (method_of, *FIGURES, infused_of):
        figure(run)
    assert sorted(made) == ["load_network", "training_sample"]


def test_a_sample_is_drawn_by_the_seed(trained, pack):
    network, manifest = load_network(trained), open_pack(pack).manifest
    some = [training_sample(network, trained.config(), manifest, QUIET, at_most=20) for _ in range(2)]
    assert some[0].described == "20 of 64 training images, drawn with seed 0"
    np.testing.assert_array_equal(some[0].numbers, some[1].numbers)
    assert len(set(some[0].numbers.tolist())) == 20 and some[0].found.images == 20
    assert some[0].images.labels.tolist() == manifest.labels("train")[some[0].numbers].tolist()


def test_averages_by_hand(trained, pack):
    network, opened = load_network(trained), open_pack(pack)
    sample = training_sample(network, trained.config(), opened.manifest, QUIET)
    averages = sample.averages([3])
    pixels = np.asarray(opened.images)[opened.manifest.positions("train")]
    views = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255 * 4 - 2  # mean ½, deviation ¼
    with torch.no_grad():
        values = network.embed(views)[:, 3].numpy()
    order = np.argsort(values)
    np.testing.assert_allclose(averages.least[0], pixels[order[:6]].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(averages.most[0], pixels[order[-6:]].mean(axis=0), atol=1e-6)


def test_chosen_images_of_a_folder_open_no_other_file(tmp_path):
    folder = class_folders(tmp_path / "train", {"cat": 3, "dog": 3}, size=32).parent
    manifest, config = read_source(folder), tiny_config()
    (folder / "train" / "cat" / "1.png").write_bytes(b"broken")
    numbers = np.array([4, 0, 2])
    pictures = all_pictures(chosen_images(config, manifest, "train", numbers, QUIET), config)
    for picture, number in zip(pictures, numbers, strict=True):
        np.testing.assert_array_equal(picture, read_image(manifest.paths("train")[number], 32))
    with pytest.raises(UserError, match=r"1\.png: it is not an image"):
        chosen_images(config, manifest, "train", np.array([1]), QUIET)


def test_an_explanation_with_every_part(trained, pack, tmp_path):
    opened, file = open_pack(pack), tmp_path / "image.png"
    Image.fromarray(np.asarray(opened.images[opened.manifest.positions("open")[0]])).save(file)
    told = explain(trained, file, QUIET)
    for part in (told.place, told.nearest, told.nearest.examples, told.concepts, told.attention):
        assert not isinstance(part, Missing)
    said = told.to_dict()
    assert said["attention"]["map_size"] == [2, 2] and np.shape(said["attention"]["self"]) == (2, 2)
    for neuron in said["infused"]["neurons"]:
        for strong in neuron["strongest"]:
            left, top, right, bottom = strong["box"]
            assert right - left == bottom - top == 24 and left >= 0 and right <= 32 and 0 <= top <= 8
    explanation_figure(told).savefig(io.BytesIO())
    with torch.no_grad():
        pixels = torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1)[None].float() / 255
        output = load_network(trained)(pixels * 4 - 2)
    added = (output.concept_selector * output.memory_feature)[0]
    assert [neuron["neuron"] for neuron in said["infused"]["neurons"]] == added.topk(3).indices.tolist()


def test_an_explanation_shows_the_training_images_that_it_names(trained, pack, tmp_path):
    opened, file = open_pack(pack), tmp_path / "image.png"
    pixels, table = np.asarray(opened.images), opened.manifest.table
    Image.fromarray(pixels[opened.manifest.positions("test")[0]]).save(file)
    told = explain(trained, file, QUIET)
    for name, example in zip(told.nearest.names, told.nearest.examples, strict=True):
        first = np.flatnonzero((table["split"] == "train") & (table["label"] == name))[0]
        np.testing.assert_array_equal(example, pixels[first])
    assert len(told.strongest) == 3
    for neuron, strongest in told.strongest.items():
        for strong, patch in zip(strongest, told.concepts.patches[neuron], strict=True):
            left, top, right, bottom = strong.box
            (place,) = np.flatnonzero(table["path"] == strong.path)
            np.testing.assert_array_equal(patch, pixels[place][top:bottom, left:right])
