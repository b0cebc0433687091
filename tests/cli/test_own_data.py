"""Training from objects of Python: a DataFrame and datasets give what the same images give as files."""

from __future__ import annotations

import json
import sys

import pytest
import yaml
from safetensors.torch import load_file

from tests.cli.conftest import QUICK
from tests.helpers.pictures import class_folders

MODULE = """
from pathlib import Path
import numpy as np
import pandas as pd
from PIL import Image

FOLDER = Path(__file__).parent / "photos"


class Photos:
    def __init__(self, split):
        self.classes = ["cat", "dog", "owl"]
        self.pairs = [
            (np.asarray(Image.open(file)), self.classes.index(name) if name in self.classes else 99)
            for name in sorted(folder.name for folder in (FOLDER / split).iterdir())
            for file in sorted((FOLDER / split / name).iterdir())
        ]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


def datasets():
    return {split: Photos(split) for split in ("train", "val", "test", "open")}


files = sorted(FOLDER.rglob("*.png"))
places = [file.relative_to(FOLDER).parts for file in files]
frame = pd.DataFrame(
    {"path": files, "label": [parts[1] for parts in places], "split": [parts[0] for parts in places]}
)
one = Photos("train")
"""


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder of photos in splits, and a module beside it that reads the same files."""
    for split, number in {"train": 6, "val": 2, "test": 3}.items():
        class_folders(tmp_path / "photos" / split, {"cat": 2 * number, "dog": number, "owl": 2}, size=36)
    class_folders(tmp_path / "photos" / "open", {"yak": 4}, size=36)
    (tmp_path / "my_photos.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_photos", raising=False)
    return tmp_path


def results(run):
    """Weights, outputs, epochs and report of a run, without the seconds."""
    report = json.loads((run / "report.json").read_text())
    report.pop("train_seconds")
    lines = [line.split(",") for line in (run / "metrics.csv").read_text().splitlines()]
    timed = [number for number, name in enumerate(lines[0]) if "second" in name]
    epochs = [[cell for number, cell in enumerate(line) if number not in timed] for line in lines]
    weights = load_file(run / "model.safetensors")
    outputs = [load_file(file) for file in sorted((run / "outputs").glob("*.safetensors"))]
    tensors = {name: value.tolist() for part in (weights, *outputs) for name, value in part.items()}
    return report, epochs, tensors


def test_datasets_and_frames_train_as_their_files_do(photos, oltr):
    assert oltr("train", "photos", *QUICK, "--out", "from-files").code == 0
    expected = results(photos / "from-files")
    for source in ("my_photos:datasets", "my_photos:frame"):
        said = oltr("train", source, *QUICK)
        assert said.code == 0, said.err
        run = photos / "runs" / f"{source.partition(':')[2]}-oltr"
        assert results(run) == expected
        kept = yaml.safe_load((run / "run.yaml").read_text())
        assert (kept["source"], kept["root"]) == (source, str(photos))


def test_a_run_finds_the_object_again_from_another_folder(photos, oltr, monkeypatch):
    assert oltr("train", "my_photos:datasets", *QUICK, "--out", "run").code == 0
    (photos / "elsewhere").mkdir()
    monkeypatch.chdir(photos / "elsewhere")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(photos)])
    monkeypatch.delitem(sys.modules, "my_photos")
    said = oltr(
        "evaluate", photos / "run", "--score", "odin", "--unknown-rate", "0.1", "--json"
    )  # reads images
    assert said.code == 0, said.err
    again = oltr("train", "my_photos:datasets", *QUICK, "--out", photos / "run", "--resume", "--root", photos)
    assert again.code == 0, again.err


def test_verbs_of_data_take_objects(photos, oltr):
    said = oltr("data", "stats", "my_photos:one", "--json")
    assert json.loads(said.out)["images"]["train"] == 13 and "Split made for you" in said.err
    assert oltr("data", "check", "my_photos:datasets", "--json").code == 0
    said = oltr("data", "pack", "my_photos:datasets", "--size", "32", "--out", "all.pack", "--json")
    assert json.loads(said.out)["images"] == 43
    oltr("data", "longtail", "my_photos:one", "--out", "tail", "--min", "1").refused(
        "Dataset", "oltr data pack"
    )
    assert not (photos / "tail").exists()


def test_an_object_that_is_not_there_is_refused(photos, oltr):
    oltr("train", "my_photo:datasets", *QUICK).refused("my_photo:datasets", "no module my_photo", "install")
    oltr("train", "my_photos:dataset", *QUICK).refused("has no attribute 'dataset'")
    assert not (photos / "runs").exists()
