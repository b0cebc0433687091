"""Runs on frozen features: kept by content and weights, the same answers on images, every way to train."""

import csv

import numpy as np
import pytest
import torch
from PIL import Image

from oltr import Recognizer, TrainedRun
from oltr.data.sources import read_source
from oltr.nn import MemoryHead
from oltr.runs.train_run import train_run
from oltr.training import features as module
from oltr.training import train
from oltr.training.configure import configure
from oltr.training.feature_cache import FeatureCache
from oltr.training.options import TrainOptions


def photos(folder, classes=3, each=8, seed=0):
    rng = np.random.default_rng(seed)
    for number in range(classes):
        colour = rng.integers(0, 256, 3)
        (folder / f"class {number}").mkdir(parents=True)
        for image in range(each):
            noise = rng.normal(0, 30, (50, 70, 3))
            pixels = (colour + noise).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"class {number}" / f"{image}.png")
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return photos(tmp_path_factory.mktemp("photos") / "photos")


def frozen(method="oltr2", **options):
    options = {"image_size": 64, "changes": ["precision=float32"]} | options
    return configure("photos-frozen", method, **options)


def run(source, out, config):
    train_run(config, read_source(source), out, TrainOptions(accelerator="cpu"), str(source))
    return TrainedRun(out)


@pytest.fixture
def computed(monkeypatch):
    """How many images' features each run computed."""
    numbers = []
    describe = module._describe

    def counted(backbone, manifest, rows, *rest):
        numbers.append(len(rows))
        return describe(backbone, manifest, rows, *rest)

    monkeypatch.setattr(module, "_describe", counted)
    return numbers


def test_a_second_run_computes_no_feature_and_gives_the_same_model(source, tmp_path, computed):
    first, again = (run(source, tmp_path / name, frozen()) for name in ("a", "b"))
    assert computed == [24, 0]
    weights = [each.folder.load_weights(each.folder.model) for each in (first, again)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_moved_and_added_images(source, tmp_path, computed):
    run(source, tmp_path / "a", frozen())
    moved = photos(tmp_path / "moved", each=8)
    Image.new("RGB", (60, 60), "red").save(moved / "class 0" / "new.png")
    run(moved, tmp_path / "b", frozen())
    assert computed == [24, 1]


@pytest.mark.parametrize(
    "other", [{"image_size": 96}, {"changes": ["precision=float32", "data.mean=[0.4, 0.5, 0.5]"]}]
)
def test_another_view_has_other_features(source, tmp_path, computed, other):
    run(source, tmp_path / "a", frozen())
    run(source, tmp_path / "b", frozen(**other))
    assert computed == [24, 24]


def test_features_of_other_weights_are_not_used(source, tmp_path, computed):
    from oltr.nn import Backbone

    run(source, tmp_path / "a", frozen())
    net = Backbone("tf_efficientnet_lite0", 64, "efficientnet-lite0").net
    state = net.state_dict()
    state["conv_stem.weight"] *= 1.5
    torch.save(state, tmp_path / "other.pth")
    config = frozen(weights=str(tmp_path / "other.pth"), backbone="tf_efficientnet_lite0")
    run(source, tmp_path / "b", config)
    assert computed == [24, 24]


@pytest.mark.parametrize("damage", [b"", b"no tensors", None])
def test_a_damaged_cache_is_written_anew(source, tmp_path, computed, damage):
    run(source, tmp_path / "a", frozen())
    (file,) = (tmp_path / "features").iterdir()
    file.write_bytes(file.read_bytes()[:-100] if damage is None else damage)
    run(source, tmp_path / "b", frozen())
    run(source, tmp_path / "c", frozen())
    assert computed == [24, 24, 0]


def test_the_run_predicts_from_images_what_it_measured_on_features(source, tmp_path):
    trained = run(source, tmp_path / "a", frozen())
    manifest, outputs = trained.manifest, trained.outputs["test"]
    predicted = Recognizer.load(tmp_path / "a").predict_proba(manifest.paths("test"))
    temperature = trained.temperature or 1.0
    expected = (outputs.logits / temperature).softmax(dim=1).numpy()
    np.testing.assert_allclose(predicted, expected, atol=1e-3)


@pytest.mark.parametrize("method", ["oltr", "lifted", "crt"])
def test_methods_that_learn_by_steps(source, tmp_path, method):
    config = frozen(method, epochs=(1, 1))
    trained = run(source, tmp_path / method, config)
    before = configure_backbone(config)
    after = trained.network.backbone.net.cpu().state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())  # frozen, statistics too
    assert len(trained.outputs["test"]) == 6


def configure_backbone(config):
    from oltr.nn import Backbone

    return Backbone(config.backbone, config.data.image_size, config.weights).net.state_dict()


@pytest.mark.parametrize("method", ["logit-adjusted", "oltr2"])
def test_fine_tuning_then_a_head_on_the_tuned_features(source, tmp_path, method):
    config = configure(
        "photos-finetuned", method, image_size=64, epochs=(1, 1), changes=["stage1.batch_size=6"]
    )
    trained = run(source, tmp_path / "a", config)
    before, after = configure_backbone(config), trained.network.backbone.net.cpu().state_dict()
    assert not torch.equal(after["conv_stem.weight"], before["conv_stem.weight"])
    assert torch.equal(after["bn1.running_mean"], before["bn1.running_mean"])  # statistics are kept
    rows = (tmp_path / "a" / "metrics.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["1", "2"]


@pytest.mark.parametrize("experts", [1, 2])
def test_from_scratch_then_a_head_beside_the_memory(source, tmp_path, experts):
    changes = ["stage1.batch_size=6", f"settings.experts={experts}"]
    config = configure("photos", "oltr2", image_size=64, epochs=(1, 1), changes=changes)
    trained = run(source, tmp_path / "a", config)
    assert isinstance(trained.network.head, MemoryHead) and trained.rule.score == "scale-70"
    assert trained.network.backbone.mirrors  # features are means over an image and its mirror image
    kept = [trained.class_names[k] for k in trained.outputs["test"].logits.argmax(dim=1)]
    recognizer = Recognizer.load(tmp_path / "a")
    assert recognizer.predict(trained.own_data.paths("test"))["label"].tolist() == kept
    recognizer.add_class("new", photos(tmp_path / "more", classes=1, each=3, seed=9))
    assert "new" in recognizer.classes_


def test_only_the_last_layer_is_tuned(source, tmp_path):
    config = configure(
        "photos-finetuned",
        "logit-adjusted",
        train_backbone="last",
        image_size=64,
        epochs=(1, 1),
        changes=["stage1.batch_size=6"],
    )
    trained = run(source, tmp_path / "a", config)
    before, after = configure_backbone(config), trained.network.backbone.net.cpu().state_dict()
    changed = {
        name.rpartition(".")[0].split(".")[0] + "." + name.split(".")[1]
        for name in before
        if not torch.equal(before[name], after[name])
    }
    assert changed and all(name.startswith(("blocks.6", "conv_head", "bn2")) for name in changed)


def test_a_cache_finds_rows_by_key(tmp_path):
    cache = FeatureCache(tmp_path / "x.safetensors", 3)
    keys = [bytes([n] * 16) for n in range(4)]
    cache.add(keys[:2], torch.arange(6.0).view(2, 3))
    cache.add([keys[2], keys[0]], torch.full((2, 3), 9.0))
    again = FeatureCache(tmp_path / "x.safetensors", 3)
    assert torch.equal(again[[keys[1], keys[2]]], torch.tensor([[3.0, 4, 5], [9, 9, 9]]))
    assert keys[3] not in again and torch.equal(again[[keys[0]]], cache[[keys[0]]])


def test_without_validation_images_softmax_and_its_threshold(tmp_path):
    for split, seed in (("train", 0), ("test", 1)):
        photos(tmp_path / "data" / split, each=4, seed=seed)
    trained = run(tmp_path / "data", tmp_path / "run", frozen())
    assert trained.rule.score == "softmax" and "no validation images" in trained.rule.note


def test_a_second_stage_on_fitted_features_is_the_same_network(source, tmp_path):
    config = frozen(changes=["precision=float32", "stage2.epochs=2"])
    trained = run(source, tmp_path / "a", config)
    assert torch.isfinite(trained.outputs["test"].logits).all()


@pytest.mark.parametrize(("recipe", "epochs"), [("photos-frozen", (1,)), ("photos", (1, 1))])
def test_a_run_that_was_stopped_after_the_fit_keeps_its_rows(source, tmp_path, monkeypatch, recipe, epochs):
    def stop(*_):
        raise KeyboardInterrupt

    config = configure(recipe, "oltr2", image_size=64, epochs=epochs)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(train, "adjust", stop)
        run(source, tmp_path / "run", config)
    rows = (tmp_path / "run" / "metrics.csv").read_text()
    options = TrainOptions(accelerator="cpu", resume=True)
    train_run(config, read_source(source), tmp_path / "run", options, str(source))
    assert (tmp_path / "run" / "metrics.csv").read_text() == rows
    seconds = [float(row["seconds"]) for row in csv.DictReader(rows.splitlines())]
    assert TrainedRun(tmp_path / "run").facts["train_seconds"] == pytest.approx(sum(seconds), abs=1e-3)


def test_features_that_cannot_be_kept_do_not_stop_the_run(source, tmp_path, capsys):
    (tmp_path / "features").touch()  # a file where the folder would be
    assert run(source, tmp_path / "a", frozen()).outputs["test"]
    assert "features are not kept" in capsys.readouterr().err


def test_what_was_computed_before_a_stop_is_kept(source, tmp_path, computed, monkeypatch):
    monkeypatch.setitem(module.BATCH, "cpu", 16)
    describe = module._describe

    def stopped(*values):
        for number, batch in enumerate(describe(*values)):
            if number:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(module, "_describe", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "a", frozen())
    monkeypatch.setattr(module, "_describe", describe)
    run(source, tmp_path / "b", frozen())
    assert computed == [24, 24 - 16]


def test_a_pack_is_seen_as_it_was_made(source, tmp_path):
    from oltr.data.pack import write_pack

    pack = write_pack(read_source(source), 64, tmp_path / "photos.pack")
    trained = run(pack, tmp_path / "a", frozen())
    files = [source / path for path in trained.manifest.rows("test")["path"]]
    predicted = Recognizer.load(tmp_path / "a").predict_proba(files)
    expected = (trained.outputs["test"].logits / (trained.temperature or 1.0)).softmax(dim=1).numpy()
    np.testing.assert_allclose(predicted, expected, atol=1e-3)
