"""Places-LT from lists and from trees of each layout."""

import pytest

from oltr.data.curate import CurateOptions, curate
from oltr.data.curate import places_lt as module
from oltr.data.curate.places_lt import class_of
from oltr.data.sources import read_source
from oltr.data.stats import stats
from oltr.errors import UserError
from tests.helpers.pictures import touch

SCENES = {"a/airfield": "airfield", "a/arena/hockey": "arena/hockey", "z/zoo": "zoo"}


@pytest.fixture(autouse=True)
def toy_size(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 12)


def tree(root, top="data_256"):
    for c, scene in enumerate(SCENES):
        touch(*(root / top / scene / f"{n:08d}.jpg" for n in range(40)))
        touch(root / "val_256" / f"Places365_val_{c + 1:08d}.jpg")
    lists = root / "filelist_places365-standard"
    lists.mkdir()
    (lists / "categories_places365.txt").write_text("".join(f"/{s} {c}\n" for c, s in enumerate(SCENES)))
    (lists / "places365_val.txt").write_text(
        "".join(f"Places365_val_{c + 1:08d}.jpg {c}\n" for c in range(3))
    )
    return root


def made(tmp_path, **options):
    curated = curate("places-lt", CurateOptions(tmp_path / "out", **options))
    return curated, read_source(tmp_path / "out").table


def test_scene_names():
    assert class_of("data_256/a/arena/hockey/1.jpg") == "arena/hockey"
    assert class_of("train/airfield/1.jpg") == class_of("/a/airfield/1.jpg".lstrip("/")) == "airfield"
    assert class_of("val_256/Places365_val_00000001.jpg") == ""


@pytest.mark.parametrize("top", ["data_256", "data_256_standard"])
def test_the_recipe_on_a_tree(tmp_path, top):
    curated, table = made(tmp_path, root=tree(tmp_path / "places", top))
    assert stats(curated.manifest)["images"] == {"train": 24, "val": 60, "test": 3, "open": 0}
    assert table[table["split"] == "test"]["label"].tolist() == list(SCENES.values())
    assert any("--order places365_train_challenge.txt" in note for note in curated.manifest.notes)
    assert any("62,500" in remark and "184.5K" in remark for remark in curated.remarks)


def test_classes_are_ordered_by_the_challenge_counts_where_they_are(tmp_path):
    root = tree(tmp_path / "places")
    sizes = {"a/airfield": 2, "a/arena/hockey": 9, "z/zoo": 4}
    lines = [f"/{s}/{n:08d}.jpg {c}\n" for c, (s, size) in enumerate(sizes.items()) for n in range(size)]
    (root / "places365_train_challenge.txt").write_text("".join(lines))
    curated, table = made(tmp_path, root=root)
    train = table[table["split"] == "train"]["label"].value_counts()
    assert train.to_dict() == {"arena/hockey": 12, "zoo": 7, "airfield": 5}
    assert any("as in places365_train_challenge.txt" in line for line in curated.recipe)


def test_class_folders_in_val_need_no_list(tmp_path):
    for scene in SCENES.values():
        touch(*(tmp_path / "places" / "train" / scene / f"{n}.jpg" for n in range(40)))
        touch(tmp_path / "places" / "val" / scene / "0.jpg")
    _, table = made(tmp_path, root=tmp_path / "places")
    assert table[table["split"] == "test"]["label"].tolist() == sorted(SCENES.values())


def test_flat_validation_images_without_their_list_are_refused(tmp_path):
    root = tree(tmp_path / "places")
    (root / "filelist_places365-standard" / "places365_val.txt").unlink()
    with pytest.raises(UserError, match=r"has no places365_val\.txt"):
        made(tmp_path, root=root)


def test_open_images_from_places_extra69(tmp_path):
    touch(*(tmp_path / "extra" / "data" / "b" / "barn_loft" / f"{n}.jpg" for n in range(4)))
    curated, table = made(tmp_path, root=tree(tmp_path / "places"), open_root=tmp_path / "extra")
    assert stats(curated.manifest)["images"]["open"] == 4
    assert set(table[table["split"] == "open"]["label"]) == {"barn_loft"}


def test_lists_give_exactly_those_images_and_scene_names(tmp_path):
    root = tree(tmp_path / "places", "data_256_standard")  # torchvision's name for the listed data_256
    folder = tmp_path / "lists"
    folder.mkdir()
    rows = {
        "train": [(f"data_256/{s}/{n:08d}.jpg", c) for c, s in enumerate(SCENES) for n in range(5 - c)],
        "test": [(f"val_256/Places365_val_{c + 1:08d}.jpg", c) for c in range(3)],
    }
    for split, lines in rows.items():
        (folder / f"Places_LT_{split}.txt").write_text("".join(f"{path} {c}\n" for path, c in lines))
    curated, table = made(tmp_path, root=root, lists=folder)
    assert stats(curated.manifest)["images"] == {"train": 12, "val": 0, "test": 3, "open": 0}
    assert table["label"].value_counts().to_dict() == {"airfield": 6, "arena/hockey": 5, "zoo": 4}
    assert all((root / path).is_file() for path in table["path"])
    assert curated.published["images"]["train"] == 62_500


@pytest.mark.parametrize("line", ["/a/airfield\n", "/a/airfield zero\n"])
def test_a_broken_list_of_categories_is_named(tmp_path, line):
    root = tree(tmp_path / "places")
    (root / "filelist_places365-standard" / "categories_places365.txt").write_text(line)
    with pytest.raises(UserError, match=r"categories_places365\.txt, line 1"):
        made(tmp_path, root=root)


def test_a_root_above_the_tree_is_refused(tmp_path):
    tree(tmp_path / "above" / "places")
    with pytest.raises(UserError, match="--root with its folder places"):
        made(tmp_path, root=tmp_path / "above")
