"""iNaturalist 2018 from its official annotations and from the lists of later papers."""

import json

import pytest

from oltr.data.curate import CurateOptions, curate
from oltr.data.sources import read_source
from oltr.data.stats import stats
from oltr.errors import UserError

SPECIES = ["Plantae/7477", "Aves/12"]
IMAGES = {
    "train": [f"train_val2018/{s}/{n}.jpg" for s in SPECIES for n in range(4)],
    "val": [f"train_val2018/{s}/{n}.jpg" for s in SPECIES for n in (8, 9)],
}


@pytest.fixture
def photos(tmp_path):
    for path in (path for paths in IMAGES.values() for path in paths):
        (tmp_path / "inat" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "inat" / path).touch()
    return tmp_path / "inat"


def official(folder):
    folder.mkdir()
    for split, paths in IMAGES.items():
        content = {
            "images": [{"id": n, "file_name": path} for n, path in enumerate(paths)],
            "annotations": [{"image_id": n, "category_id": 5} for n in range(len(paths))],
        }
        (folder / f"{split}2018.json").write_text(json.dumps(content))
    return folder


def lists(folder):
    folder.mkdir()
    for split, paths in IMAGES.items():
        lines = [f"{path} {SPECIES.index('/'.join(path.split('/')[1:3]))}\n" for path in paths]
        (folder / f"iNaturalist18_{split}.txt").write_text("".join(lines))
    return folder


@pytest.mark.parametrize("form", [official, lists])
def test_validation_images_are_the_test_split(tmp_path, photos, form):
    curated = curate(
        "inaturalist18", CurateOptions(tmp_path / "out", root=photos, lists=form(tmp_path / "lists"))
    )
    assert stats(curated.manifest)["images"] == {"train": 8, "val": 0, "test": 4, "open": 0}
    table = read_source(tmp_path / "out").table
    assert all(f"/{row.label}/" in row.path for row in table.itertuples())


def test_bad_input(tmp_path, photos):
    options = CurateOptions(tmp_path / "out", root=photos)
    with pytest.raises(UserError, match="defined by its lists"):
        curate("inaturalist18", options)
    folder = official(tmp_path / "lists")
    for content in ("{}", "", "[" * 100_000):
        (folder / "val2018.json").write_text(content)
        with pytest.raises(UserError, match=r"val2018\.json is no annotation file"):
            curate("inaturalist18", CurateOptions(tmp_path / "out", root=photos, lists=folder))
    numbered = {"images": [{"id": 1, "file_name": 5}], "annotations": [{"image_id": 1}]}
    (folder / "val2018.json").write_text(json.dumps(numbered))
    with pytest.raises(UserError, match="Not there: 1 of 9 listed files, 5"):
        curate("inaturalist18", CurateOptions(tmp_path / "out", root=photos, lists=folder))


def test_open_images_come_from_a_folder(tmp_path, photos):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "a.jpg").touch()
    options = CurateOptions(
        tmp_path / "out", root=photos, lists=official(tmp_path / "lists"), open_root=tmp_path / "odd"
    )
    assert stats(curate("inaturalist18", options).manifest)["images"]["open"] == 1
