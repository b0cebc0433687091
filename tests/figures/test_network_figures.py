"""From a run folder to the figures of its network: which images, from where, and what is refused."""

from __future__ import annotations

import io
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from oltr.data.images import read_image
from oltr.data.pack import open_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.figures import activation_averages, attention_overlay, infused_concepts, method_figure, run_images
from oltr.figures.explanation_figure import explanation_figure
from oltr.runs.explain.activations import activations
from oltr.runs.explain.explain import explain
from oltr.runs.explain.explanation import Missing
from oltr.runs.explain.training_sample import training_sample
from oltr.runs.pictures import chosen_images, pictures_of
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions
from tests.helpers.pictures import class_folders
from tests.helpers.tiny import tiny_config

FIGURES = [attention_overlay, infused_concepts, activation_averages]


def train(pack: Path, folder: Path, method: str = "oltr", **settings) -> TrainedRun:
    """A run of one epoch a stage."""
    config = tiny_config(method, epochs=(1, 1))
    config = tiny_config(method, epochs=(1, 1), settings=config.settings | settings)
    train_run(config, open_pack(pack).manifest, folder, TrainOptions(accelerator="cpu"), str(pack))
    return TrainedRun(folder)


def without_images(run: TrainedRun, pack: Path, folder: Path) -> TrainedRun:
    """A copy of the run whose images are gone."""
    shutil.copytree(run.path, folder)
    file = folder / "run.yaml"
    file.write_text(file.read_text().replace(f"source: {pack}", f"source: {folder / 'gone.pack'}"))
    return TrainedRun(folder)


@pytest.fixture(scope="module")
def trained(pack, tmp_path_factory) -> TrainedRun:
    """A run with attention and memory; read-only."""
    return train(pack, tmp_path_factory.mktemp("runs") / "oltr")


@pytest.fixture(scope="module")
def other(pack, tmp_path_factory) -> TrainedRun:
    """One with self-attention alone and a layer before v_direct; read-only."""
    folder = tmp_path_factory.mktemp("runs") / "other"
    return train(pack, folder, attention="self", fc=7)


def test_one_image_of_each_kind(trained, pack):
    figure = attention_overlay.of_run(trained)
    assert "2×2" in figure.get_suptitle() and len(figure.axes) == 4 * 3
    names = [axes.get_xlabel() for axes in figure.axes[::4]]
    assert [name.split("\n")[1] for name in names] == ["(medium-shot)", "(few-shot)", "(open)"]
    table = open_pack(pack).manifest.rows("open")
    assert names[-1].split("\n")[0] in set(table["label"])
    again = attention_overlay.of_run(trained)
    assert [axes.get_xlabel() for axes in again.axes] == [axes.get_xlabel() for axes in figure.axes]


def test_concepts_and_averages(trained):
    concepts, averages = infused_concepts.draw([trained]), activation_averages.of_run(trained)
    assert "24 of 32 px" in concepts.get_suptitle() and "all 64 training images" in concepts.get_suptitle()
    assert len(concepts.axes) == 4 * 3
    assert len(averages.axes) == 3 * 3 and "means of 6 images" in averages.get_suptitle()
    first = [axes.get_title() for axes in concepts.axes[1::4]]
    assert [axes.get_xlabel().split(":")[0] for axes in averages.axes[1::3]] == first
    for figure in (concepts, averages):
        figure.savefig(io.BytesIO())


def test_another_kind_of_network(other):
    attention, concepts = attention_overlay.of_run(other), infused_concepts.draw([other])
    assert "2×2" in attention.get_suptitle()
    assert "settings.attention is self" in attention.axes[2].texts[0].get_text()
    assert "patches (24 of 32 px)" in concepts.get_suptitle()  # behind a layer, too
    sheet = concepts.axes[1].images[0].get_array()
    assert sheet.shape[0] < 3 * 32  # nine patches, not nine images
    neurons = [int(axes.get_title().split()[1]) for axes in concepts.axes if axes.get_title()]
    assert max(neurons) < 7
    activation_averages.of_run(other)


def test_the_page_leaves_out_what_shows_nothing(trained, monkeypatch):
    with pytest.raises(UserError, match="2×2 positions, too few"):
        attention_overlay.draw([trained])
    monkeypatch.setattr(attention_overlay, "COARSEST", 2)
    attention_overlay.draw([trained])
    with pytest.raises(UserError, match="grey blur"):
        activation_averages.draw([trained])  # characters anywhere in the picture


def test_averages_of_aligned_images_keep_their_edges(trained, monkeypatch):
    sample = run_images.kept_sample(trained)
    random = np.random.default_rng(0)
    face = random.integers(0, 256, (32, 32, 3))

    def pictures(alike, images):
        noise = random.integers(0, 256, (images, 32, 32, 3))
        return (alike * face + (1 - alike) * noise).astype(np.uint8)

    def edges(alike, images):
        monkeypatch.setattr(type(sample), "pictures", lambda self, rows: pictures(alike, images))
        return sample.averages([0, 1]).aligned

    # Pictures a · face + (1 − a) · noise, both with edges of one height, have a² of a² + (1 − a)² in common.
    assert edges(0.0, 6) == pytest.approx(0, abs=0.02) and edges(1.0, 6) == pytest.approx(1)
    for alike in (0.4, 0.7):
        common = alike**2 / (alike**2 + (1 - alike) ** 2)
        for images in (6, 50):  # as many as a mean happens to be of
            assert edges(alike, images) == pytest.approx(common, abs=0.03)
    assert edges(0.0, 50) < activation_averages.ALIGNED < edges(0.3, 6)
    assert edges(0.5, 1) == 0  # one image is aligned with nothing


def test_grey_faces_at_112_pixels_without_test_images(tmp_path):
    """As MS1M-LT is: aligned, grey, larger than the glyphs, for training alone."""
    draw = np.random.default_rng(0)
    face = draw.normal(128, 40, (112, 92))
    for person in range(4):
        folder = tmp_path / "faces" / "train" / f"person {person}"
        folder.mkdir(parents=True)
        for number in range(6):
            pixels = face + 15 * person + draw.normal(0, 40, face.shape)
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8), "L").save(folder / f"{number}.png")
    config = tiny_config("oltr", epochs=(1, 1))
    config = replace(config, data=replace(config.data, image_size=112, stored_size=112))
    source = tmp_path / "faces"
    train_run(config, read_source(source), tmp_path / "run", TrainOptions(accelerator="cpu"), str(source))
    run = TrainedRun(tmp_path / "run")
    figure = activation_averages.draw([run])
    assert "means of 2 images" in figure.get_suptitle()
    assert [axes.get_xlabel().split("\n")[1] for axes in figure.axes[::3]] == ["(few-shot)"]
    least, most = (axes.images[0].get_array() for axes in figure.axes[1:3])
    assert least.shape == most.shape == (112, 112, 3)
    assert (most == most[..., :1]).all(), "grey stays grey"
    infused_concepts.draw([run])


def test_what_a_run_has_not(pack, tmp_path, trained):
    plain = train(pack, tmp_path / "plain", "plain")
    gone = without_images(trained, pack, tmp_path / "gone")
    for figure in FIGURES:
        with pytest.raises(UserError, match=r"no attention|infuses nothing"):
            figure.draw([plain])
        with pytest.raises(UserError, match="not there any more"):
            figure.draw([gone])


def test_the_method_needs_no_images(trained, pack, tmp_path):
    total = sum(parameter.numel() for parameter in trained.network.parameters())
    figure = method_figure.draw([without_images(trained, pack, tmp_path / "run")])
    assert f"{total / 1e6:.2f} million parameters" in figure.get_suptitle()


def test_figures_of_one_run_share_one_pass_over_its_training_images(trained, monkeypatch):
    run, passes = TrainedRun(trained.path), []
    module = sys.modules[training_sample.__module__]

    def counted(*given):
        passes.append(given)
        return activations(*given)

    monkeypatch.setattr(module, "activations", counted)
    for figure in (*FIGURES, infused_concepts):
        figure.of_run(run)
    assert len(passes) == 1


def test_data_that_do_not_fit_the_outputs(trained, tmp_path):
    run = TrainedRun(shutil.copytree(trained.path, tmp_path / "run"))
    (run.folder.outputs / "open.safetensors").unlink()
    with pytest.raises(UserError, match="outputs of 0 open images, its data 12"):
        run_images.own_data(run)


def test_a_sample_is_drawn_by_the_seed(trained):
    some = [training_sample(trained, at_most=20) for _ in range(2)]
    assert some[0].described == "20 of 64 training images, drawn with seed 0"
    np.testing.assert_array_equal(some[0].rows, some[1].rows)
    assert len(set(some[0].rows.tolist())) == 20 and some[0].found.images == 20
    assert some[0].images.labels.tolist() == trained.manifest.labels("train")[some[0].rows].tolist()


def test_averages_by_hand(trained, pack):
    opened = open_pack(pack)
    averages = training_sample(trained).averages([3])
    pixels = np.asarray(opened.images)[opened.manifest.positions("train")]
    views = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255 * 4 - 2  # mean ½, deviation ¼
    with torch.no_grad():
        values = trained.network.embed(views.to(trained.device))[:, 3].cpu().numpy()
    order = np.argsort(values)
    np.testing.assert_allclose(averages.least[0], pixels[order[:6]].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(averages.most[0], pixels[order[-6:]].mean(axis=0), atol=1e-6)


def test_chosen_images_of_a_folder_open_no_other_file(trained, tmp_path):
    folder = class_folders(tmp_path / "train", {"cat": 3, "dog": 3}, size=32).parent
    run = TrainedRun(trained.path)
    run.manifest = read_source(folder)
    (folder / "train" / "cat" / "1.png").write_bytes(b"broken")
    rows = np.array([4, 0, 2])
    pictures = pictures_of(run, chosen_images(run, "train", rows))
    for picture, row in zip(pictures, rows, strict=True):
        np.testing.assert_array_equal(picture, read_image(run.manifest.paths("train")[row], 32))
    with pytest.raises(UserError, match=r"1\.png: it is not an image"):
        chosen_images(run, "train", np.array([1]))


def test_an_explanation_with_every_part(trained, pack, tmp_path):
    opened, file = open_pack(pack), tmp_path / "image.png"
    Image.fromarray(np.asarray(opened.images[opened.manifest.positions("open")[0]])).save(file)
    told = explain(trained, file)
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
        output = trained.network((pixels * 4 - 2).to(trained.device))
    added = (output.concept_selector * output.memory_feature)[0]
    assert [neuron["neuron"] for neuron in said["infused"]["neurons"]] == added.topk(3).indices.tolist()


def test_an_explanation_shows_the_training_images_that_it_names(trained, pack, tmp_path):
    opened, file = open_pack(pack), tmp_path / "image.png"
    pixels, table = np.asarray(opened.images), opened.manifest.table
    Image.fromarray(pixels[opened.manifest.positions("test")[0]]).save(file)
    told = explain(trained, file)
    for name, example in zip(told.nearest.names, told.nearest.examples, strict=True):
        first = np.flatnonzero((table["split"] == "train") & (table["label"] == name))[0]
        np.testing.assert_array_equal(example, pixels[first])
    assert len(told.strongest) == 3
    for neuron, strongest in told.strongest.items():
        for strong, patch in zip(strongest, told.concepts.patches[neuron], strict=True):
            left, top, right, bottom = strong.box
            (place,) = np.flatnonzero(table["path"] == strong.path)
            np.testing.assert_array_equal(patch, pixels[place][top:bottom, left:right])
