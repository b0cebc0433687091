"""`Recognizer` with scores that have to see the training images, or to change those they judge."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from oltr import Recognizer, UserError
from oltr.data.sources import read_source
from tests.helpers.pictures import class_folders

TINY = {"stage1.batch_size": 8, "stage2.batch_size": 8}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for split, number in (("train", 8), ("val", 3), ("test", 3)):
        class_folders(folder / split, {"a": number, "b": number, "c": number}, 32)
    class_folders(folder / "open", {"stranger": 5}, 32)
    return folder


@pytest.fixture(scope="module")
def trained(photos, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    settings = {"recipe": "glyphs", "epochs": (1, 1), "changes": TINY, "verbose": False}
    Recognizer(run=run, unknown_rate=0.3, **settings).fit(photos)
    return run


@pytest.mark.parametrize("name", ["knn", "mahalanobis", "openmax", "vim", "odin", "energy", "max-logit"])
def test_predictions_follow_the_score(photos, trained, name):
    recognizer = Recognizer.load(trained, score=name)
    assert recognizer.score_ == name
    table = recognizer.predict(read_source(photos).paths("open"))
    run = recognizer.run_
    np.testing.assert_allclose(table["unknown_score"], run.scored("open").unknown, rtol=1e-3, atol=1e-3)
    assert table["unknown"].tolist() == run.rule.rejects(run.scored("open").values).tolist()
    report = recognizer.evaluate()
    assert report["open"]["score"] == name and report["open"]["threshold"] == recognizer.threshold_
    assert recognizer.evaluate(photos)["open"]["auroc"] == pytest.approx(report["open"]["auroc"], abs=0.05)


def test_a_saved_model_needs_its_photos_no_more(photos, trained, tmp_path):
    own = shutil.copytree(photos, tmp_path / "photos")
    settings = {"recipe": "glyphs", "epochs": (1, 1), "changes": TINY, "verbose": False}
    recognizer = Recognizer(score="knn", **settings).fit(own)
    recognizer.save(tmp_path / "model")
    before = recognizer.predict(photos / "open")
    shutil.rmtree(own)
    again = Recognizer.load(tmp_path / "model")
    assert again.score_ == "knn" and again.predict(photos / "open").equals(before)
    with pytest.raises(UserError, match=r"(?s)are needed.*photos"):
        Recognizer.load(tmp_path / "model", score="odin")
