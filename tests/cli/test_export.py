"""`oltr export`: the run's answers from onnxruntime alone, checked before the file appears; bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import yaml
from PIL import Image

from oltr.export import parity, write
from oltr.export.graph import in_float32
from oltr.runs.trained_run import TrainedRun
from tests.helpers.pictures import write_picture
from tests.helpers.processes import run_python

SIZES = [(32, 32), (20, 45), (300, 211), (61, 600)]


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory) -> Path:
    """The run of oltr as a file; read-only."""
    from oltr.cli.main import _guarded

    file = tmp_path_factory.mktemp("models") / "my model.onnx"
    assert _guarded(["export", str(trained["oltr"]), "--onnx", str(file), "--check", "12"]) == 0
    return file


@pytest.fixture
def run(trained, tmp_path) -> Path:
    """A run that may be spoilt."""
    return shutil.copytree(trained["oltr"], tmp_path / "run")


def pictures(size: tuple[int, int], number: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    colours = rng.integers(0, 256, (number, 4, 5, 3), dtype=np.uint8)
    return np.stack([np.asarray(Image.fromarray(each).resize(size[::-1])) for each in colours])


def metadata(file: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in onnx.load(file).metadata_props}


def change_rule(run: Path, **values) -> None:
    file = run / "run.yaml"
    facts = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(facts | {"decision": facts["decision"] | values}))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", [1, 3])
def test_the_file_answers_as_the_run_does(exported, trained, size, number):
    session = onnxruntime.InferenceSession(exported)
    names = [entry.name for entry in session.get_outputs()]
    given = pictures(size, number)
    found = dict(zip(names, session.run(names, {"pixels": given}), strict=True))
    table = in_float32(TrainedRun(trained["oltr"])).predict(given)
    assert found["label"].tolist() == table["label"].tolist()
    assert found["unknown"].tolist() == table["unknown"].tolist()
    for column in ("probability", "unknown_score", "reachability", "calibrated_probability"):
        np.testing.assert_allclose(found[column], table[column], rtol=1e-5, atol=1e-5, err_msg=column)
    assert found["probabilities"].shape == (number, 6) and found["label_index"].dtype == np.int64
    np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, rtol=1e-5)


def test_the_file_and_its_card_say_what_it_is(exported, trained):
    run, told = TrainedRun(trained["oltr"]), metadata(exported)
    assert json.loads(told["classes"]) == run.class_names
    assert told["score"] == run.rule.score and float(told["threshold"]) == run.rule.threshold
    assert json.loads(told["run"])["data_fingerprint"] == run.facts["data"]["fingerprint"]
    checked = json.loads(told["parity"])
    assert checked["difference"]["images"] == checked["difference"]["same_decisions"] == 12
    assert "run's own (test and open" in checked["what"] and "rescaled to many sizes" in checked["what"]
    onnx.checker.check_model(exported, full_check=True)
    card = (exported.parent / "my model-card.md").read_text()
    for words in (
        "An image classifier for 6 classes",
        str(run.rule),
        "identical for 12 of 12",
        "from scratch",
    ):
        assert words in card
    assert all(f"| {each['name']} | {each['train_count']} |" in card for each in run.classes)
    assert sorted(file.name for file in exported.parent.iterdir()) == ["my model-card.md", "my model.onnx"]


def test_given_images_are_compared_and_a_fitted_score_goes_along(oltr, run, tmp_path):
    assert oltr("evaluate", run, "--score", "knn", "--keep").code == 0
    for number, size in enumerate((9, 40, 200)):
        write_picture(tmp_path / "new" / f"{number}.png", size)
    said = oltr("export", run, "--onnx", tmp_path / "a.onnx", "--check", tmp_path / "new", "--json")
    told = json.loads(said.out)
    assert told["parity"]["difference"]["images"] == 3
    assert told["parity"]["what"] == f"3 images of {tmp_path / 'new'}"
    assert (
        told["bytes"] == (tmp_path / "a.onnx").stat().st_size
        and metadata(tmp_path / "a.onnx")["score"] == "knn"
    )


def test_without_the_runs_images_made_up_ones_are_said_to_be_such(run):
    file = run / "run.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"source": "gone"}))
    from oltr.export.check_images import own_images

    images = own_images(TrainedRun(run), 11)
    assert images.what.startswith("11 made-up images, no photos (the run's own cannot be read:")
    assert len({picture.shape for picture in images}) == 10


def test_a_score_that_needs_a_gradient_is_refused(oltr, run, tmp_path):
    change_rule(run, score="odin", threshold=0.2)
    oltr("export", run, "--onnx", tmp_path / "a.onnx").refused(
        "'odin' cannot be exported", "gradient", "--score softmax --keep"
    )
    assert not list(tmp_path.glob("*a.onnx*"))


def test_a_model_that_disagrees_is_not_written(oltr, run, exported, tmp_path, monkeypatch):
    def others(run, pixels, real=parity.in_torch):
        answers = real(run, pixels)
        answers.probabilities[0, 0] += 0.001
        return answers

    monkeypatch.setattr(parity, "in_torch", others)
    monkeypatch.setattr("oltr.export.graph.onnx_model", lambda _: onnx.load(exported))
    file = tmp_path / "a.onnx"
    file.write_bytes(b"older")
    said = oltr("export", run, "--onnx", file, "--check", "3")
    said.refused("does not give the run's answers; nothing was written", "differ by at most 1.0e-03")
    assert file.read_bytes() == b"older" and not (tmp_path / "a-card.md").exists()


def test_bad_places_and_missing_packages_are_refused_at_once(oltr, run, tmp_path, monkeypatch):
    monkeypatch.setattr("oltr.export.graph.onnx_model", lambda *_: pytest.fail("work was done"))
    oltr("export", run, "--onnx", tmp_path / "a.pt").refused("no name for an ONNX model", "a.onnx")
    (tmp_path / "b.onnx").mkdir()
    oltr("export", run, "--onnx", tmp_path / "b.onnx").refused("is a folder")
    oltr("export", tmp_path / "none", "--onnx", tmp_path / "c.onnx").refused("none")
    oltr("export", run, "--onnx", tmp_path / "c.onnx", "--check", "0").refused("compares nothing")
    oltr("export", run, "--onnx", tmp_path / "c.onnx", "--check", tmp_path / "nowhere").refused("nowhere")
    monkeypatch.setattr(write, "find_spec", lambda name: None if name == "onnxscript" else name)
    oltr("export", run, "--onnx", tmp_path / "c.onnx").refused(
        "Export needs onnxscript", 'pip install "oltr[export]"'
    )


KILLED = """
import os, pathlib, signal, sys
import onnx
from oltr.cli.main import main
from oltr.export import graph
graph.onnx_model = lambda _: onnx.load(sys.argv[1])
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[2:])
"""


def test_killed_before_the_file_has_its_name_nothing_of_it_is_there(
    oltr,
    trained,
    exported,
    tmp_path,
    monkeypatch,
):
    file = tmp_path / "a.onnx"
    words = ["export", str(trained["oltr"]), "--onnx", str(file), "--check", "2"]
    done = run_python(["-c", KILLED, str(exported), *words])
    assert done.returncode == -signal.SIGKILL and not file.exists(), done.stderr
    monkeypatch.setattr("oltr.export.graph.onnx_model", lambda _: onnx.load(exported))
    assert oltr(*words).code == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a-card.md", "a.onnx"]


@pytest.mark.soak
def test_killed_at_any_moment_the_file_is_whole_or_not_there(oltr, trained, tmp_path):
    file, run = tmp_path / "a.onnx", str(trained["oltr"])
    words = [sys.executable, "-m", "oltr.cli.main", "export", run, "--onnx", str(file), "--check", "5"]
    began = time.monotonic()
    subprocess.run(words, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    whole = time.monotonic() - began
    for moment in np.random.default_rng(0).uniform(0, 1.2 * whole, 20):
        file.unlink()
        with subprocess.Popen(words, env=os.environ | {"OMP_NUM_THREADS": "1"}) as process:
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.kill()
        if file.exists():
            onnx.checker.check_model(file, full_check=True)
        else:
            subprocess.run(words, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert not list(tmp_path.glob(".*.part"))
