"""Evaluation size and mirror images: every answer of a trained run against explicit passes of its network."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional as F

from oltr.config import RunConfig
from oltr.data.augment import Augment
from oltr.data.images import read_image
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.export.check_images import given_images
from oltr.export.graph import in_float32
from oltr.export.write import export_onnx
from oltr.openworld.add_class import add_class
from oltr.report.page.repeat import origin
from oltr.report.page.runs import MeasuredRun
from oltr.runs.dry_run import check_run
from oltr.runs.explain.explain import explain
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.adjust import log_frequencies
from oltr.training.build import build_backbone, build_method, build_network
from oltr.training.configure import configure
from oltr.training.eval_size import check_eval_size
from oltr.training.feature_cache import cache_name
from oltr.training.features import _view
from oltr.training.options import TrainOptions
from oltr.training.train import train
from tests.helpers.pictures import class_folders
from tests.helpers.serving import files, serving, upload
from tests.helpers.tiny import tiny_config

SIZE, TAU = 40, 0.5
COUNTS = torch.tensor([9, 5, 2])


@pytest.fixture(scope="module")
def folder(photo_folder, tmp_path_factory) -> Path:
    """A run of oltr with all three options; read-only."""
    config = tiny_config("oltr", (6, 3), backbone="resnet10_half", adjust="fixed", adjust_tau=TAU)
    data = dataclasses.replace(config.data, eval_size=SIZE, test_flip=True)
    out = tmp_path_factory.mktemp("runs") / "all"
    config = dataclasses.replace(config, data=data)
    train_run(config, read_source(photo_folder), out, TrainOptions(accelerator="cpu"), str(photo_folder))
    return out


@pytest.fixture
def run(folder) -> TrainedRun:
    return TrainedRun(folder)


@torch.no_grad()
def by_hand(run: TrainedRun, images: list[Path]) -> list[torch.Tensor]:
    """Logits, feature, meta-embedding and reachability of the trained network, without any of the options."""
    data, network = run.config.data, run.trained_network
    pixels = np.stack([read_image(image, data.frame) for image in images])
    stored = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    views = Augment(dataclasses.replace(data, eval_size=None)).evaluate(stored)
    views = F.interpolate(views, size=(SIZE, SIZE), mode="bilinear", align_corners=False, antialias=False)
    passes = []
    for seen in (views, torch.flip(views, dims=[3])):
        feature = network.direct_feature(network.attention(network.backbone(seen)))
        parts = network.head.meta(feature)
        logits = network.head.classifier(parts.meta_embedding)  # no shift: that is the head's
        n = torch.tensor([entry["train_count"] for entry in run.folder.classes()]).float()
        logits = logits - TAU * (n.log() - n.log().mean())
        passes.append((logits, feature, parts.meta_embedding, parts.reachability))
    return [(one + other) / 2 for one, other in zip(*passes, strict=True)]


def test_outputs_are_means_over_image_and_mirror_image_at_the_evaluation_size(run, photo_folder):
    kept = run.outputs["test"]
    images = [photo_folder / path for path in run.manifest.rows("test")["path"]]
    expected = by_hand(run, images)
    found = (kept.logits, kept.features, kept.embeddings, kept.reachability)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    with torch.no_grad():  # and each option matters
        plain = dataclasses.replace(run.config.data, eval_size=None)
        once = torch.stack([torch.from_numpy(read_image(each, plain.frame)) for each in images])
        unflipped = run.trained_network(Augment(plain).evaluate(once.permute(0, 3, 1, 2)))
    assert (unflipped.logits - kept.logits).abs().max() > 0.01


def test_images_are_answered_as_the_kept_outputs_are_before_and_after_a_class_is_added(
    folder, photo_folder, strangers, tmp_path
):
    run = TrainedRun(shutil.copytree(folder, tmp_path / "run"))

    def compared() -> None:
        images = [photo_folder / path for path in run.manifest.rows("test")["path"]]
        table, kept = run.predict(images), run.outputs["test"]
        probabilities, labels = kept.probabilities().max(dim=1)
        assert table["label"].tolist() == [run.class_names[label] for label in labels]
        np.testing.assert_allclose(table["probability"], probabilities, atol=1e-5)
        np.testing.assert_allclose(table["reachability"], kept.reachability, rtol=1e-4)

    compared()
    shift = run.trained_network.head.shift
    add_class(run, "pink", strangers["pink"][:6])
    # An added class has a row beside logits that are shifted already, and no shift of its own.
    assert len(run.class_names) == len(shift) + 1 and torch.equal(run.trained_network.head.shift, shift)
    compared()
    said = run.predict(strangers["pink"][6:])
    assert (said["label"] == "pink").sum() >= 3
    assert "head.shift" in run.folder.load_weights(run.folder.model)


def test_served_answers_are_those_of_predict(folder, strangers, photo_folder, tmp_path):
    run = shutil.copytree(folder, tmp_path / "run")
    sent = [*strangers["cyan"][:4], *sorted((photo_folder / "test").rglob("*.png"))[::5]]
    with serving(run) as client:

        def compared() -> None:
            table = TrainedRun(run).predict(sent)
            answers = client.post("/predict", files=files(sent)).json()["predictions"]
            assert [each["label"] for each in answers] == table["label"].tolist()
            for column in ("probability", "unknown_score", "reachability"):
                found = [each[column] for each in answers]
                np.testing.assert_allclose(found, table[column], rtol=1e-4, atol=1e-5)

        compared()
        ids = upload(client, strangers["pink"][:5])
        client.post("/add-class", json={"name": "lynx", "images": ids}).raise_for_status()
        compared()


def test_the_exported_model_does_all_of_it(run, photo_folder, tmp_path):
    path, images = tmp_path / "a.onnx", sorted((photo_folder / "test").rglob("*.png"))[::5]
    exported = export_onnx(run, path, given_images(photo_folder / "val" / "red"))
    assert exported.parity.difference.equal
    session = onnxruntime.InferenceSession(path)
    given = np.stack([read_image(image, run.config.data.frame) for image in images])
    names = ["label", "probability", "unknown_score", "reachability"]
    found = dict(zip(names, session.run(names, {"pixels": given}), strict=True))
    table = in_float32(run).predict(given)
    assert found["label"].tolist() == table["label"].tolist()
    for name in names[1:]:
        np.testing.assert_allclose(found[name], table[name], rtol=1e-4, atol=1e-5)
    probabilities = by_hand(run, images)[0].softmax(dim=1).amax(dim=1)
    np.testing.assert_allclose(found["probability"], probabilities, atol=1e-4)
    card = (tmp_path / "a-card.md").read_text()
    assert "| Image size | 40 px, averaged over the image and its horizontal flip |" in card


def test_an_explanation_has_the_verdict_of_predict_and_the_maps_of_the_plain_image(run, strangers):
    image = strangers["cyan"][0]
    told, row = explain(run, image), run.predict([image]).iloc[0]
    assert told.candidates[0].name == row["label"]
    assert told.candidates[0].probability == pytest.approx(row["probability"], abs=1e-5)
    assert told.picture.shape == (SIZE, SIZE, 3)
    views = Augment(run.config.data).evaluate(
        torch.from_numpy(read_image(image, run.config.data.frame))[None].permute(0, 3, 1, 2)
    )
    with torch.no_grad():
        spatial = run.network.attention.spatial(run.network.backbone(views))[0, 0]
    np.testing.assert_allclose(told.attention.spatial[0], spatial, atol=1e-5)
    assert all(box.box[3] <= SIZE for each in told.strongest.values() for box in each)


def test_features_that_classes_are_added_beside_are_means_too(run, photo_folder):
    exemplars = run.exemplars
    assert len(exemplars.features) == 10 * 4 + 8 + 6
    images = [photo_folder / path for path in run.manifest.rows("train")["path"]]
    expected = by_hand(run, images)[1]
    distances = (exemplars.features[:, None] - expected).abs().amax(dim=2)
    assert distances.amin(dim=1).max() < 1e-4


def frozen(**data: Any) -> RunConfig:
    config = configure("photos-frozen", "logit-adjusted", image_size=64, changes=["precision=float32"])
    return dataclasses.replace(config, data=dataclasses.replace(config.data, **data))


def test_a_frozen_backbone_keeps_features_of_that_size_and_of_both_sides(tmp_path):
    source = class_folders(tmp_path / "photos", {"cat": 9, "dog": 7}, size=40)
    config = frozen(eval_size=80, test_flip=True)
    train_run(config, read_source(source), tmp_path / "run", TrainOptions(accelerator="cpu"), str(source))
    run = TrainedRun(tmp_path / "run")
    data, backbone, kept = run.config.data, run.network.backbone, run.outputs["test"]
    images = [source / path for path in run.manifest.rows("test")["path"]]
    table = run.predict(images)  # from images as from the kept features
    np.testing.assert_allclose(table["probability"], kept.probabilities().amax(dim=1), atol=1e-4)
    stored = torch.from_numpy(np.stack([read_image(image, data.frame) for image in images]))
    views = Augment(dataclasses.replace(data, eval_size=None)).evaluate(stored.permute(0, 3, 1, 2))
    views = F.interpolate(views, size=(80, 80), mode="bilinear", align_corners=False, antialias=False)
    backbone.mirrors = False
    with torch.no_grad():
        sides = [backbone.describe(each) for each in (views, views.flip(3))]
        expected = backbone.normalise((sides[0] + sides[1]) / 2)
    torch.testing.assert_close(kept.features, expected, rtol=1e-3, atol=1e-3)


def test_a_head_fitted_after_the_backbone_learned_is_fitted_to_both_sides_too():
    config = tiny_config("logit-adjusted")
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, test_flip=True))
    backbone = build_network(config, build_method(config, torch.tensor([5, 3])), 2).backbone
    image = torch.randn(1, 3, 32, 32)
    torch.testing.assert_close(backbone.eval().describe(image), backbone.describe(image.flip(3)))


def test_features_are_kept_by_size_and_mirror_image_and_old_ones_still_found():
    backbone, cpu = build_backbone(frozen()), torch.device("cpu")
    views = [
        _view(backbone, frozen(**data), cpu)
        for data in ({}, {"eval_size": 64}, {"eval_size": 80}, {"test_flip": True})
    ]
    names = {cache_name("a", backbone.net, view) for view in views}
    assert len(names) == 3 and views[0] == views[1]
    assert not {"eval_size", "test_flip"} & views[0].keys()  # as it was before there was a choice


def test_a_size_that_the_network_does_not_take_is_told_before_training(photo_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("oltr.training.train._train_stages", lambda *_: pytest.fail("training began"))
    released = configure("glyphs", "oltr", changes=["settings.attention_form=released", "data.eval_size=40"])
    transformer = configure("glyphs", "plain", backbone="vit_tiny_patch16_224", changes=["data.eval_size=48"])
    source = read_source(photo_folder)
    for config, words in ((released, "attention_form: released"), (transformer, "vit_tiny_patch16_224 says")):
        with pytest.raises(UserError, match=f"data.eval_size is .* px alone(.|\n)*{words}"):
            train(config, source, tmp_path / "run", TrainOptions(accelerator="cpu"))
        with pytest.raises(UserError, match=r"--set data\.eval_size=32"):
            check_run(config, source)
    assert not (tmp_path / "run").exists()


def test_sizes_that_the_network_takes_pass():
    for changes in (["data.eval_size=40"], ["settings.attention_form=released", "data.eval_size=32"], []):
        check_eval_size(configure("glyphs", "oltr", changes=changes), COUNTS)


def test_the_evaluation_size_follows_the_image_size_and_has_limits(tmp_path):
    recipe = tmp_path / "larger.yaml"
    recipe.write_text("base: glyphs\nrun:\n  data: {eval_size: 40}\n")
    assert configure(str(recipe), "plain").data.eval_size == 40
    assert configure(str(recipe), "plain", image_size=64).data.eval_size == 80
    assert configure("glyphs", "plain", image_size=64).data.eval_size is None
    with pytest.raises(UserError, match=r"data\.eval_size is 4\b"):
        configure("glyphs", "plain", changes=["data.eval_size=4"])
    with pytest.raises(UserError, match="adjust is 'best'"):
        configure("glyphs", "plain", changes=["adjust=best"])


def test_the_shift_is_relative_to_an_average_class():
    levels = log_frequencies(COUNTS)
    assert float(levels.sum()) == pytest.approx(0, abs=1e-6)
    assert float(levels[0] - levels[2]) == pytest.approx(np.log(9 / 2), rel=1e-6)


def test_the_page_and_the_report_tell_the_adjustment(run):
    assert run.facts["adjustment"] == {"tau": TAU, "by": "fixed", "gain": None, "standard_error": None}
    assert run.report["adjustment"]["tau"] == TAU
    told = origin(MeasuredRun(run, run.report))
    assert dict(told.facts)["post-hoc adjustment"] == "τ = 0.5, as in the settings"
    assert not told.note  # the command repeats it
    for words in ("adjust=fixed", "adjust_tau=0.5", "data.eval_size=40", "data.test_flip=true"):
        assert f"--set {words}" in told.commands[0]
