"""`Recognizer` with images in memory, probabilities, and the manners of scikit-learn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.base import clone

from oltr import Recognizer, UserError
from tests.helpers.pictures import class_folders, write_picture

SIDE = 32


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split, number in (("train", 8), ("val", 6), ("test", 3)):
        class_folders(folder / split, {"ant": number, "bee": number, "cat": number}, SIDE)
    return folder


def tiny(**options) -> Recognizer:
    changes = {"stage1.batch_size": 8, "stage2.batch_size": 8}
    settings = {"recipe": "glyphs", "epochs": (2, 1), "changes": changes, "verbose": False}
    return Recognizer(**(settings | options))


@pytest.fixture(scope="module")
def trained(data) -> Recognizer:
    return tiny().fit(data)


@pytest.fixture
def files(data):
    return sorted((data / "test").rglob("*.png"))


def test_images_in_memory_get_the_answers_of_their_files(trained, files):
    by_path = trained.predict(files)
    opened = [Image.open(file) for file in files]
    arrays = [np.asarray(Image.open(file)) for file in files]
    for given in (opened, arrays, np.stack(arrays), [*files[:2], *opened[2:5], *arrays[5:]]):
        table = trained.predict(given)
        pd.testing.assert_frame_equal(table.drop(columns="path"), by_path.drop(columns="path"))
    assert trained.predict(opened)["path"].tolist() == [str(file) for file in files]
    assert (trained.predict(arrays)["path"] == "").all()
    single = trained.predict(arrays[0])
    assert len(single) == 1 and single["label"][0] == by_path["label"][0]
    assert len(trained.predict(opened[0])) == 1
    assert len(trained.predict([opened[0]] * 40)) == 40  # one object from many threads


def test_grey_pictures_and_all_modes(trained):
    grey = np.random.default_rng(0).integers(0, 256, (20, 30), dtype=np.uint8)
    modes = [
        grey,
        np.repeat(grey[..., None], 3, axis=2),
        Image.fromarray(grey),
        Image.fromarray(grey).convert("P"),
    ]
    table = trained.predict(modes)
    assert (table["error"] == "").all() and table["probability"].nunique() == 1


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((8, 8, 3)), "ndarray of float64, shape 8×8×3"),
        (np.zeros((3, 8, 8), np.uint8), "shape 3×8×8"),
        (np.zeros((0, 8, 3), np.uint8), "shape 0×8×3"),
        (np.zeros(8, np.uint8), "shape 8"),
        (torch.zeros(3, 8, 8), "is a Tensor"),
        (None, "is a NoneType"),
    ],
)
def test_other_arrays_are_refused_by_their_place(trained, files, image, words):
    with pytest.raises(UserError, match=rf"images\[1\] is an? .*{words.removeprefix('is a ')}"):
        trained.predict([files[0], image])


def test_a_picture_that_breaks_when_touched_gets_a_row(trained, files, tmp_path):
    cut = write_picture(tmp_path / "cut.png", 200)
    cut.write_bytes(cut.read_bytes()[:300])
    table = trained.predict([Image.open(cut), files[0]])
    assert table["error"][0] and table["error"][1] == ""
    assert np.isnan(trained.predict_proba([Image.open(cut), files[0]])[0]).all()


def test_probabilities_are_calibrated_and_in_the_order_of_the_classes(trained, files):
    table, found = trained.predict(files), trained.predict_proba(files)
    assert found.shape == (len(files), 3) and found.dtype == np.float64
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert [trained.classes_[k] for k in found.argmax(axis=1)] == table["label"].tolist()
    np.testing.assert_allclose(found.max(axis=1), table["calibrated_probability"])
    temperature = trained.run_.temperature
    assert temperature is not None and temperature != 1
    logits = trained.run_.outputs["test"].logits
    np.testing.assert_allclose(found, (logits / temperature).softmax(dim=1), atol=1e-4)
    np.testing.assert_allclose(table["probability"], logits.softmax(dim=1).amax(dim=1), atol=1e-4)
    assert trained.predict_proba([]).shape == (0, 3)


def test_without_validation_images_they_are_plain(tmp_path):
    class_folders(tmp_path / "data" / "train", {"a": 4, "b": 4}, SIDE)
    recognizer = tiny().fit(tmp_path / "data")
    table = recognizer.predict(tmp_path / "data")
    assert recognizer.run_.temperature is None and table["calibrated_probability"].isna().all()
    found = recognizer.predict_proba(tmp_path / "data").max(axis=1)
    np.testing.assert_allclose(found, table["probability"], rtol=1e-6)


def test_an_output_that_is_not_finite_is_an_error_and_not_known(trained, files, tmp_path, monkeypatch):
    trained.save(tmp_path / "run")
    astray = Recognizer.load(tmp_path / "run")
    forward = astray.network_.forward

    def some_nan(views):
        output = forward(views)
        output.logits[1], output.logits[2, 0] = torch.nan, torch.inf
        return output

    monkeypatch.setattr(astray.network_, "forward", some_nan)
    table = astray.predict(files)
    assert [bool(error) for error in table["error"][:4]] == [False, True, True, False]
    assert "NaN" in table["error"][1] and table.loc[1:2].drop(columns=["path", "error"]).isna().all(axis=None)
    assert not (table["unknown"] == False).fillna(False)[1:3].any()  # noqa: E712
    assert np.isnan(astray.predict_proba(files)).all(axis=1).tolist()[:4] == [False, True, True, False]


def test_its_repr_tells_what_it_is(trained):
    assert repr(Recognizer()) == "Recognizer()"
    assert repr(Recognizer("plain", image_size=64)) == "Recognizer(method='plain', image_size=64)"
    text = repr(trained)
    assert text.startswith(
        "Recognizer: oltr on resnet10_half, 3 classes (ant, bee, cat). An image is unknown"
    )
    assert "softmax score is below" in text


def test_parameters_as_scikit_learn_has_them(trained):
    recognizer = Recognizer("plain", backbone="resnet18", seed=3)
    params = recognizer.get_params()
    assert params["method"] == "plain" and params["seed"] == 3 and params["epochs"] == ()
    assert recognizer.set_params(seed=4, method="oltr") is recognizer
    assert (recognizer.seed, recognizer.method, recognizer.backbone) == (4, "oltr", "resnet18")
    with pytest.raises(UserError, match="did you mean backbone"):
        recognizer.set_params(backbon="resnet10", seed=9)
    assert recognizer.seed == 4
    copy = clone(trained)
    assert not hasattr(copy, "run_") and copy.get_params() == trained.get_params()


def test_a_loaded_one_is_trained_anew_with_the_settings_of_its_run(data, tmp_path):
    first = tiny(
        method="plain", changes={"stage1.batch_size": 8, "stage1.lr": 0.03}, epochs=(1,), run=tmp_path / "run"
    )
    first.fit(data)
    kept = {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    loaded = Recognizer.load(tmp_path / "run", verbose=False)
    assert loaded.get_params()["changes"]["stage1.lr"] == 0.03
    assert loaded.fit(data) is loaded and loaded.run_.path != tmp_path / "run"
    config, again = first.run_.config, loaded.run_.config
    assert dataclasses.replace(again, decision=config.decision) == config  # there the score has its name
    assert loaded.run_.rule == first.run_.rule
    pd.testing.assert_frame_equal(loaded.predict(data / "test"), first.predict(data / "test"))
    assert kept == {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
