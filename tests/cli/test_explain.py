"""`explain`: the same verdict as `predict`, each part or why it is missing, and bad input refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from oltr import Recognizer
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.runs.outputs import Outputs
from oltr.training.run_folder import RunFolder
from tests.helpers.gpu import ACROSS_BATCHES
from tests.helpers.tiny import tiny_pack

KEYS = ("schema", "image", "run", "method", "label", "probability", "unknown", "candidates", "decision")
PARTS = ("nearest", "infused", "attention")


@pytest.fixture
def run(trained, tmp_path) -> Path:
    """A run of oltr that may be spoilt."""
    return shutil.copytree(trained["oltr"], tmp_path / "run")


@pytest.fixture
def image(pack, tmp_path) -> Path:
    """The first test image, as a file of its own."""
    opened = open_pack(pack)
    file = tmp_path / "some image.png"
    Image.fromarray(np.asarray(opened.images[opened.manifest.positions("test")[0]])).save(file)
    return file


def told(said) -> dict:
    assert said.code == 0, said.err
    return json.loads(said.out)


def change(run: Path, **values) -> None:
    """Other entries in run.yaml."""
    file = run / "run.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | values, sort_keys=False))


def test_it_says_what_predict_says(oltr, run, image):
    said = oltr("explain", run, image, "--json")
    answer = told(said)
    assert said.err == "" and tuple(answer) == (*KEYS, *PARTS, "picture")
    recognizer = Recognizer.load(run, verbose=False)
    row = recognizer.predict(image).iloc[0]
    assert (answer["label"], answer["unknown"]) == (row["label"], row["unknown"])
    assert answer["probability"] == pytest.approx(row["probability"], rel=1e-5)
    assert answer["candidates"][1]["name"] == row["second_label"]
    assert answer["decision"]["threshold"] == recognizer.threshold_
    assert answer["decision"]["value"] == pytest.approx(1 - row["unknown_score"], rel=1e-6)
    assert answer["nearest"]["classes"][0]["distance"] == pytest.approx(row["reachability"], rel=1e-5)
    picture = run / "explain" / f"{'-'.join(image.parts[1:])}.png"
    assert answer["picture"] == str(picture) and Image.open(picture).format == "PNG"
    assert [file.name for file in picture.parent.iterdir()] == [picture.name]


def test_candidates_and_parts(oltr, run, image):
    answer = told(oltr("explain", run, image, "--json"))
    classes = {entry["name"]: entry for entry in RunFolder(run).classes()}
    shares = [candidate["probability"] for candidate in answer["candidates"]]
    assert len(shares) == 5 and shares == sorted(shares, reverse=True) and sum(shares) <= 1 + 1e-6
    for candidate in answer["candidates"]:
        assert candidate["train_count"] == classes[candidate["name"]]["train_count"]
        assert candidate["shots"] == classes[candidate["name"]]["shots"]
    neurons = answer["infused"]["neurons"]
    amounts = [neuron["infused"] for neuron in neurons]
    assert len(neurons) == 3 and amounts == sorted(amounts, reverse=True)
    assert answer["infused"]["among"] == "all 64 training images"
    for neuron in neurons:
        assert len(neuron["strongest"]) == 9
        assert all(strong["path"].startswith("train/") for strong in neuron["strongest"])
    assert "no attention" in answer["attention"]["missing"]  # so small a network gives no map


def test_shares_of_less_familiar_images_by_a_loop(oltr, run, image):
    decision = told(oltr("explain", run, image, "--json"))["decision"]
    groups = [entry["shots"] for entry in RunFolder(run).classes()]
    tally: dict[str, list[bool]] = {}
    for split in ("test", "open"):
        outputs = Outputs.load(run / "outputs" / f"{split}.safetensors")
        for logits, label in zip(outputs.logits.double(), outputs.labels.tolist(), strict=True):
            kind = "open" if label == -1 else groups[label]
            tally.setdefault(kind, []).append(float(logits.softmax(0).max()) < decision["value"])
    assert decision["less_familiar"] == pytest.approx({k: sum(v) / len(v) for k, v in tally.items()})


def test_words_for_the_screen(oltr, run, image):
    said = oltr("explain", run, image, "--out", run / "why.svg")
    lines = said.out.splitlines()
    assert said.code == 0 and lines[0].startswith(f"{image}: ") and "%" in lines[0]
    assert "threshold" in lines[1] and lines[-1] == f"picture: {run / 'why.svg'}"
    assert (run / "why.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert oltr("explain", run, image, "--out", run / "why.PDF").code == 0


@pytest.mark.parametrize("name", ["reachability", "energy", "knn", "odin"])
def test_other_scores(oltr, run, image, name):
    answer = told(oltr("explain", run, image, "--score", name, "--unknown-rate", "0.2", "--json"))
    recognizer = Recognizer.load(run, score=name, unknown_rate=0.2, verbose=False)
    row, decision = recognizer.predict(image).iloc[0], answer["decision"]
    sign = -1 if decision["higher_is_known"] else 1
    assert (decision["score"], decision["unknown_rate"]) == (name, 0.2)
    assert decision["threshold"] == pytest.approx(recognizer.threshold_)
    assert sign * decision["value"] == pytest.approx(row["unknown_score"], rel=1e-5)
    assert answer["unknown"] == row["unknown"]


def test_the_decision_a_run_was_saved_with(oltr, run, image):
    change(run, decision={"score": "energy", "unknown_rate": 0.3})
    decision = told(oltr("explain", run, image, "--json"))["decision"]
    assert (decision["score"], decision["unknown_rate"]) == ("energy", 0.3)
    decision = told(oltr("explain", run, image, "--threshold", "7", "--json"))["decision"]
    assert (decision["score"], decision["threshold"], decision["unknown_rate"]) == ("energy", 7.0, None)


def test_beyond_the_threshold_it_is_unknown(oltr, run, image):
    assert told(oltr("explain", run, image, "--threshold", "1", "--json"))["unknown"] is True
    assert told(oltr("explain", run, image, "--threshold", "0", "--json"))["unknown"] is False
    assert "unknown, likeliest" in oltr("explain", run, image, "--threshold", "1").out


def test_a_method_without_class_means_and_attention(oltr, trained, image, tmp_path):
    run = shutil.copytree(trained["plain"], tmp_path / "plain")
    answer = told(oltr("explain", run, image, "--json"))
    assert "memory" in answer["infused"]["missing"] and "no attention" in answer["attention"]["missing"]
    kept = Outputs.load(run / "outputs" / "val.safetensors")
    feature = Outputs.load(run / "outputs" / "test.safetensors").features[0]
    distances = {}
    for number, entry in enumerate(RunFolder(run).classes()):
        mean = torch.stack([f for f, y in zip(kept.features, kept.labels, strict=True) if y == number]).mean(
            0
        )
        distances[entry["name"]] = float((feature - mean).norm())
    nearest = answer["nearest"]
    assert nearest["of"] == "class means of the validation images"
    found = {entry["name"]: entry["distance"] for entry in nearest["classes"]}
    assert list(found.values()) == sorted(found.values())
    assert found == pytest.approx({name: distances[name] for name in found}, rel=ACROSS_BATCHES)
    assert list(found.values()) == pytest.approx(sorted(distances.values())[:5], rel=ACROSS_BATCHES)


def test_training_images_that_are_gone_and_back(oltr, run, image, pack, tmp_path):
    change(run, source=str(tmp_path / "gone.pack"))
    answer = told(oltr("explain", run, image, "--json"))
    assert "--source" in answer["infused"]["missing"] and "gone.pack" in answer["infused"]["missing"]
    assert [neuron["strongest"] for neuron in answer["infused"]["neurons"]] == [[], [], []]
    assert len(answer["nearest"]["classes"]) == 5
    answer = told(oltr("explain", run, image, "--source", pack, "--json"))
    assert "missing" not in answer["infused"]
    other = tiny_pack(tmp_path / "other", seed=1)
    change(run, data=yaml.safe_load((run / "run.yaml").read_text())["data"] | {"fingerprint": "another"})
    oltr("explain", run, image, "--source", other).refused("other images than the run was trained on")


def test_no_open_images_and_no_outputs(oltr, run, image):
    (run / "outputs" / "open.safetensors").unlink()
    assert "open" not in told(oltr("explain", run, image, "--json"))["decision"]["less_familiar"]
    shutil.rmtree(run / "outputs")
    decision = told(oltr("explain", run, image, "--json"))["decision"]
    kept = yaml.safe_load((run / "run.yaml").read_text())["decision"]
    assert decision["threshold"] == kept["threshold"]  # the run's rule needs no outputs
    assert "no outputs of test images" in decision["less_familiar"]["missing"]
    oltr("explain", run, image, "--unknown-rate", "0.1").refused("no validation images")


def test_outputs_that_cannot_be_read(oltr, run, image):
    for split in ("test", "open"):
        (run / "outputs" / f"{split}.safetensors").write_bytes(b"cut")
        answer = told(oltr("explain", run, image, "--json"))
        missing = answer["decision"]["less_familiar"]["missing"]
        assert "cannot be read" in missing and "--resume, which makes them anew" in missing
        assert len(answer["nearest"]["classes"]) == 5 and answer["decision"]["unknown_rate"] == 0.05
    (run / "outputs" / "val.safetensors").write_bytes(b"cut")
    rate = ("--unknown-rate", "0.2")
    oltr("explain", run, image, *rate).refused("val.safetensors cannot be read", "--resume, which makes them")
    assert oltr("explain", run, image).code == oltr("explain", run, image, "--threshold", "0.3").code == 0


def test_an_interrupted_run_is_told_to_go_on(oltr, run, image):
    change(run, finished=False)
    oltr("explain", run, image).refused("has not finished training", "oltr train command with --resume")


def test_bad_input_is_refused_and_nothing_written(oltr, run, image, pack, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    oltr("explain", run, broken).refused("broken.jpg cannot be read", "not an image")
    oltr("explain", run, tmp_path / "nowhere.png").refused("no such file")
    for folder in (tmp_path, ".", "..", "/"):
        oltr("explain", run, folder).refused("is a folder", "an image in it")
    oltr("explain", tmp_path, image).refused("is not a run folder")
    oltr("explain", run, image, "--out", "why.gif").refused("why.gif", ".png, .svg, .pdf")
    oltr("explain", run, image, "--root", tmp_path).refused("without a --source")
    oltr("explain", run, image, "--threshold", "1", "--unknown-rate", "0.1").refused("not both")
    oltr("explain", run, image, "--unknown-rate", "7").refused("between 0 and 1")
    oltr("explain", run, image, "--score", "sofmax").refused("did you mean softmax")
    oltr("explain", run, image, "--source", tmp_path / "x.pack").refused("x.pack")
    assert not (run / "explain").exists()
    (run / "model.safetensors").write_bytes(b"cut")
    oltr("explain", run, image).refused("is not whole")


def test_a_name_that_is_no_utf_8(oltr, run, image, tmp_path):
    odd = tmp_path / os.fsdecode(b"caf\xe9.png")
    shutil.copy(image, odd)
    oltr("explain", run, odd).refused("caf\\udce9.png' is not valid UTF-8", "rename it")
    with pytest.raises(UserError, match="not valid UTF-8"):
        Recognizer.load(run, verbose=False).predict(odd)


def test_images_of_one_name_keep_their_pictures(oltr, run, image, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("north/IMG_0001.png", "south/IMG_0001.png", "south/IMG_0001.jpg"):
        Path(name).parent.mkdir(exist_ok=True)
        shutil.copy(image, name)
        assert oltr("explain", run, name).code == 0
    assert sorted(file.name for file in (run / "explain").iterdir()) == [
        "north-IMG_0001.png.png",
        "south-IMG_0001.jpg.png",
        "south-IMG_0001.png.png",
    ]
