"""`Recognizer`: from a folder of pictures to predictions, saved and loaded, with clear words for misuse."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from PIL import Image

from oltr import Recognizer, UserError
from oltr.data.curate.glyphs import make_glyphs
from oltr.data.pack import write_pack
from oltr.data.sources import read_source
from oltr.runs import predict as prediction
from oltr.runs import read_ahead
from tests.helpers.pictures import class_folders, write_picture

COLUMNS = [
    "path", "label", "probability", "unknown", "unknown_score", "reachability", "second_label",
    "second_probability", "error", "calibrated_probability",
]  # fmt: skip
TINY = {"stage1.batch_size": 8, "stage2.batch_size": 8}


def tiny(**options) -> Recognizer:
    settings = {"recipe": "glyphs", "epochs": (1, 1), "changes": TINY, "verbose": False}
    return Recognizer(**(settings | options))


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    """Class folders of characters, no splits, and a folder of unknown ones."""
    folder = tmp_path_factory.mktemp("my photos")
    glyphs = make_glyphs(
        known=4, open_classes=1, largest=30, smallest=10, val_per_class=0, test_per_class=0, open_per_class=5
    )
    for pixels, path in zip(glyphs.images, glyphs.table["path"], strict=True):
        file = folder / path.replace("train/", "").replace("open/", "unknown/")
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    return folder


@pytest.fixture(scope="module")
def trained(flat) -> Recognizer:
    return tiny(epochs=(3, 2)).fit(flat)


@pytest.fixture
def files(flat) -> list[str]:
    return sorted(str(file) for file in flat.rglob("*.png"))


def test_init_only_stores_and_fit_returns_self(flat, trained):
    recognizer = Recognizer(method="no such method", epochs=(0, 0), changes={"a.b": 1}, unknown_rate=7)
    assert recognizer.method == "no such method" and recognizer.unknown_rate == 7
    assert not [name for name in vars(recognizer) if name.endswith("_")]
    assert isinstance(trained, Recognizer)
    assert trained.classes_ == list(read_source(flat).classes) and 0 < trained.threshold_ < 1


def test_evaluate_gives_a_table(flat, trained):
    text = trained.evaluate().table().text()
    assert all(word in text for word in ("closed", "open", "many", "medium", "few", "AUROC", "oltr"))
    assert trained.evaluate()["open"]["threshold"] == trained.threshold_
    assert trained.evaluate(flat).data == trained.evaluate().data


def test_evaluate_on_a_source_reads_its_images_anew(flat, trained, tmp_path):
    glyph_of = {name: sorted((flat / name).iterdir())[0] for name in trained.classes_}
    first = trained.classes_[0]
    for name in trained.classes_:
        (tmp_path / "data" / "test" / name).mkdir(parents=True)
        # Every class shows the same picture: at most one class can be right.
        (tmp_path / "data" / "test" / name / "0.png").write_bytes(glyph_of[first].read_bytes())
    report = trained.evaluate(tmp_path / "data")
    assert report["closed"]["overall"] in (0, 0.25) and "open" not in report
    for name in trained.classes_:
        (tmp_path / "data" / "test" / name / "0.png").write_bytes(glyph_of[name].read_bytes())
    again = trained.evaluate(tmp_path / "data")
    guessed = trained.predict([glyph_of[name] for name in trained.classes_])["label"]
    assert again["closed"]["overall"] == pytest.approx(np.mean(guessed == trained.classes_))


def test_predictions_agree_with_the_outputs_kept_in_training(flat, trained):
    outputs = trained.run_.outputs["test"]
    table = trained.predict(read_source(flat).paths("test"))
    assert list(table.columns) == COLUMNS and (table["error"] == "").all()
    best = outputs.probabilities().max(dim=1)
    assert table["label"].tolist() == [trained.classes_[k] for k in best.indices]
    np.testing.assert_allclose(table["probability"], best.values, atol=1e-5)
    np.testing.assert_allclose(table["reachability"], outputs.reachability, rtol=1e-4)
    np.testing.assert_allclose(table["unknown_score"], 1 - table["probability"], atol=1e-6)
    assert (table["probability"] >= table["second_probability"]).all()
    assert (table["label"] != table["second_label"]).all()
    assert (table["unknown"] == (table["probability"] < trained.threshold_)).all()


def test_odd_files_get_rows_and_the_call_finishes(trained, tmp_path):
    fine = write_picture(tmp_path / "Fotos im März" / "größe 日本.png", 40)
    deep = tmp_path / "sixteen bits.png"
    Image.fromarray(np.linspace(0, 65535, 32 * 32, dtype=np.uint16).reshape(32, 32)).save(deep)
    empty, text, cut = tmp_path / "empty.jpg", tmp_path / "text.png", tmp_path / "cut.png"
    empty.touch()
    text.write_text("no picture")
    cut.write_bytes(fine.read_bytes()[:200])
    table = trained.predict([empty, fine, text, tmp_path / "gone.png", deep, cut])
    assert [bool(error) for error in table["error"]] == [True, False, True, True, False, True]
    assert table["path"].tolist()[1] == str(fine)
    assert "0 bytes" in table["error"][0] and "no such file" in table["error"][3]
    broken = table[table["error"] != ""].drop(columns=["path", "error"])
    assert broken.isna().all(axis=None) and table.loc[[1, 4], COLUMNS].notna().all(axis=None)
    assert len(table[table["unknown"]]) <= 2  # a column with gaps still filters
    table.to_csv(tmp_path / "predictions.csv", index=False)
    assert list(pd.read_csv(tmp_path / "predictions.csv").columns) == COLUMNS


def test_predict_takes_one_file_a_folder_or_nothing(flat, trained, files, tmp_path):
    assert trained.predict(files[0])["path"].tolist() == [files[0]]
    assert sorted(trained.predict(flat)["path"]) == files
    nothing = trained.predict([])
    assert len(nothing) == 0 and list(nothing.columns) == COLUMNS
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no images"):
        trained.predict(tmp_path / "empty")


def test_a_few_files_are_decoded_at_a_time(trained, files, monkeypatch):
    whole = trained.predict(files)
    most, rows_of = [], prediction.rows_of
    monkeypatch.setattr(read_ahead, "AT_A_TIME", 7)
    monkeypatch.setattr(
        prediction,
        "rows_of",
        lambda run, some, *more: most.append(len(some.names)) or rows_of(run, some, *more),
    )
    parts = trained.predict(files)
    assert max(most) == 7 and sum(most) == len(files)
    # On a GPU in bfloat16, where a row depends a little on its neighbours.
    near = 1e-2 if torch.cuda.is_available() else 1e-4
    pd.testing.assert_frame_equal(whole, parts, rtol=near)


def test_saved_and_loaded_it_predicts_the_same(trained, files, tmp_path):
    assert trained.save(tmp_path / "runs" / "mine") is trained
    loaded = Recognizer.load(tmp_path / "runs" / "mine")
    pd.testing.assert_frame_equal(loaded.predict(files), trained.predict(files))
    assert loaded.evaluate().data == trained.evaluate().data
    assert loaded.classes_ == trained.classes_ and loaded.method == "oltr"
    assert not list(tmp_path.rglob("*.part"))
    assert loaded.save(tmp_path / "runs" / "mine") is loaded  # where it is already


def test_save_leaves_other_folders_alone(trained, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        trained.save(tmp_path / "full")
    with pytest.raises(UserError, match="a file"):
        trained.save(tmp_path / "full" / "note.txt")
    assert [file.name for file in tmp_path.rglob("*")] == ["full", "note.txt"]
    (tmp_path / "void").mkdir()
    trained.save(tmp_path / "void")
    assert (tmp_path / "void" / "run.yaml").is_file()


def test_the_unknown_rate_moves_the_threshold_and_stays_with_the_model(flat, trained, files, tmp_path):
    trained.save(tmp_path / "run")
    known = read_source(flat).paths("val")
    called = {}
    for rate in (0.02, 0.3, 0.9):
        recognizer = Recognizer.load(tmp_path / "run", unknown_rate=rate)
        called[rate] = recognizer.predict(known)["unknown"].mean()
        assert called[rate] <= rate + 1e-9
    assert called[0.02] < called[0.3] < called[0.9]
    assert Recognizer.load(tmp_path / "run", unknown_rate=None).threshold_ == 0.1
    recognizer.save(tmp_path / "strict")
    again = Recognizer.load(tmp_path / "strict")
    assert again.unknown_rate == 0.9 and again.threshold_ == recognizer.threshold_


def test_another_score(trained, files, tmp_path):
    trained.save(tmp_path / "run")
    recognizer = Recognizer.load(tmp_path / "run", score="reachability")
    table = recognizer.predict(files)
    np.testing.assert_allclose(table["unknown_score"], table["reachability"])
    assert (table["unknown"] == (table["reachability"] > recognizer.threshold_)).all()
    assert recognizer.evaluate()["open"]["score"] == "reachability"


def test_a_folder_with_splits_and_a_run_of_ones_own(tmp_path):
    for split, number in (("train", 6), ("val", 2), ("test", 2)):
        class_folders(tmp_path / "data" / split, {"a b": number, "ü": number}, 32)
    class_folders(tmp_path / "data" / "open", {"stranger": 3}, 32)
    recognizer = tiny(run=tmp_path / "run", method="plain").fit(tmp_path / "data")
    assert recognizer.classes_ == ["a b", "ü"] and recognizer.evaluate()["open"]["auroc"] is not None
    table = recognizer.predict(tmp_path / "data" / "open")
    assert len(table) == 3 and table["reachability"].isna().all()
    assert yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())["finished"]
    with pytest.raises(UserError, match="holds a run already"):
        recognizer.fit(tmp_path / "data")
    assert len(recognizer.predict(tmp_path / "data" / "open")) == 3  # the trained one is still there


def test_without_validation_or_test_images(tmp_path, capsys):
    class_folders(tmp_path / "data" / "train", {"a": 4, "b": 4}, 32)
    recognizer = tiny(verbose=True).fit(tmp_path / "data")
    assert recognizer.threshold_ == 0.1 and "no validation images" in capsys.readouterr().err
    assert len(recognizer.predict(tmp_path / "data")) == 8
    with pytest.raises(UserError, match="test images"):
        recognizer.evaluate()
    with pytest.raises(UserError, match="no default threshold"):
        tiny(score="reachability").fit(tmp_path / "data")


@pytest.mark.parametrize(("size", "near"), [(36, 1e-5), (48, 0.1)])  # the run stores 40
def test_a_model_trained_on_a_pack_sees_new_files_as_it_saw_those(flat, tmp_path, size, near):
    manifest = read_source(flat)
    pack = write_pack(manifest, size, tmp_path / "photos.pack")
    recognizer = tiny(changes={"data.stored_size": 40}).fit(pack)
    assert recognizer.run_.config.data.stored_size == min(size, 40)
    kept = recognizer.run_.outputs["test"].probabilities().amax(dim=1)
    np.testing.assert_allclose(recognizer.predict(manifest.paths("test"))["probability"], kept, atol=near)
    assert recognizer.evaluate(pack).data == recognizer.evaluate().data
    assert size == 48 or recognizer.evaluate(flat).data == recognizer.evaluate().data


def test_misuse_is_told_in_one_message(flat, tmp_path):
    for act in (lambda r: r.predict("a.png"), lambda r: r.evaluate(), lambda r: r.save(tmp_path / "x")):
        with pytest.raises(UserError, match="Not trained yet"):
            act(Recognizer())
    with pytest.raises(UserError, match="not a run folder"):
        Recognizer.load(tmp_path)
    for options, words in (
        ({"method": "oltrr"}, "did you mean oltr"),
        ({"backbone": "resnet11"}, "resnet11.*\n.*did you mean"),
        ({"recipe": "glyph"}, "did you mean glyphs"),
        ({"score": "softmx"}, "did you mean softmax"),
        ({"score": "reachability", "method": "plain"}, "plain has none"),
        ({"unknown_rate": 5}, "unknown rate must lie between 0 and 1; got 5"),
        ({"epochs": 3}, "epochs is 3"),
        ({"changes": {"stage1.rate": 0.1}}, "rate"),
    ):
        with pytest.raises(UserError, match=words):
            tiny(**options).fit(flat)
    with pytest.raises(UserError, match="no file or folder"):
        tiny().fit(tmp_path / "nowhere")


def test_changes_of_every_kind_reach_the_configuration(flat):
    changes = {"stage1.lr_milestones": {1: 0.5}, "stage1.schedule": "step", "stage1.weight_decay": 1e-7}
    changes |= {"settings.fc": None, "settings.squash": "paper", "data.mean": (0, 0, 0)}
    recognizer = tiny(changes=TINY | changes).fit(flat)
    config = recognizer.run_.config
    assert config.stage1.lr_milestones == {1: 0.5} and config.stage1.weight_decay == 1e-7
    assert config.settings["fc"] is None and config.settings["squash"] == "paper"
    assert config.data.mean == (0.0, 0.0, 0.0)
