from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oltr.data.curate.benchmark import Curated
from oltr.data.curate.write import write_curation
from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.helpers.pictures import picture


def curated(out, name="toy", number=4, pictures=True):
    paths = [f"images/train/{'ab'[index % 2]}/{index}.png" for index in range(number)]
    table = pd.DataFrame({"path": paths, "label": [path.split("/")[2] for path in paths], "split": "train"})
    drawn = {path: picture(path) for path in paths} if pictures else {}
    return Curated(name, Manifest.build(table, out), "a test", ("Two classes.",), seed=3, pictures=drawn)


def draw(counts, path):
    path.write_text(str(counts.tolist()))


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_manifest_card_and_pictures_are_written(tmp_path):
    out = tmp_path / "deep" / "out"
    calls = []
    made = curated(out)
    write_curation(made, out, lambda done, total: calls.append((done, total)), draw)
    assert names(out) == ["card.md", "classes.png", "images", "manifest.csv"]
    back = read_source(out)
    assert back.fingerprint() == made.manifest.fingerprint()
    assert back.root == out
    for path in back.table["path"]:
        np.testing.assert_array_equal(np.asarray(Image.open(out / path)), picture(path))
    card = (out / "card.md").read_text(encoding="utf-8")
    for said in (
        "# toy",
        "a test",
        "Two classes.",
        "Seed: 3",
        "| training images | 4 |",
        made.manifest.fingerprint(),
    ):
        assert said in card
    assert calls[-1] == (4, 4)
    assert (out / "classes.png").read_text() == "[2, 2]" and "(classes.png)" in card
    assert names(out.parent) == ["out"]


def test_the_image_root_is_recorded_when_images_are_referenced(tmp_path):
    write_curation(curated(tmp_path / "elsewhere", pictures=False), tmp_path / "out")
    assert read_source(tmp_path / "out").root == tmp_path / "elsewhere"


def test_an_earlier_curation_is_replaced_and_anything_else_kept(tmp_path):
    out = tmp_path / "out"
    write_curation(curated(out, number=6), out)
    write_curation(curated(out, number=4), out)
    assert read_source(out).sizes()["train"] == 4
    assert len(list((out / "images").rglob("*.png"))) == 4
    with pytest.raises(UserError, match="not empty"):
        write_curation(curated(out, name="other"), out)
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"thesis\.txt"):
        write_curation(curated(out), out)
    assert (out / "thesis.txt").read_text() == "years of work"
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        write_curation(curated(tmp_path / "file"), tmp_path / "file")


@pytest.mark.parametrize("existing", [False, True])
def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, existing):
    out = tmp_path / "out"
    if existing:
        write_curation(curated(out, number=2), out)
    save = Image.Image.save

    def full(self, path, **options):
        if str(path).endswith("3.png"):
            raise OSError(28, "No space left on device")
        save(self, path, **options)

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(UserError, match="No space left"):
        write_curation(curated(out), out)
    assert names(tmp_path) == (["out"] if existing else [])
    if existing:
        assert read_source(out).sizes()["train"] == 2


def test_the_folder_one_stands_in_is_filled_in_place(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    for number in (2, 4):
        write_curation(curated(out, number=number), Path())
        assert names(Path()) == ["card.md", "images", "manifest.csv"]
        assert "classes.png" not in Path("card.md").read_text(encoding="utf-8")
        assert read_source(".").sizes()["train"] == number
    assert names(tmp_path) == ["out"]


def test_a_failed_swap_brings_the_earlier_curation_back(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_curation(curated(out, number=2), out)
    rename = Path.rename

    def failing(self, target):
        if ".part" in str(self.parent) and self.name == "manifest.csv":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(UserError, match="Input/output error"):
        write_curation(curated(out, number=4), out)
    assert read_source(out).sizes()["train"] == 2
    assert len(list((out / "images").rglob("*.png"))) == 2
    assert names(tmp_path) == ["out"]
