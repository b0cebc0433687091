"""SUN-LT: listed training and test images, validation from what no list names."""

import pytest

from oltr.data.curate import CurateOptions, curate
from oltr.data.curate.sun_lt import class_of
from oltr.data.sources import read_source
from oltr.data.stats import stats
from oltr.errors import UserError

SCENES = {"a/abbey": "abbey", "a/arch/indoor": "arch/indoor"}


@pytest.fixture
def sun(tmp_path):
    for scene in SCENES:
        (tmp_path / "SUN397" / scene).mkdir(parents=True)
        for n in range(20):
            (tmp_path / "SUN397" / scene / f"sun_{n:02d}.jpg").touch()
    return tmp_path / "SUN397"


def lists(folder, line="/{path}\n", val=False):
    folder.mkdir(exist_ok=True)
    parts = {"train": range(6), "test": range(6, 10)} | ({"val": range(10, 12)} if val else {})
    for split, numbers in parts.items():
        text = "".join(
            line.format(path=f"{scene}/sun_{n:02d}.jpg", label=c)
            for c, scene in enumerate(SCENES)
            for n in numbers
        )
        (folder / f"SUN_LT_{split}.txt").write_text(text)
    return folder


def made(tmp_path, **options):
    curated = curate("sun-lt", CurateOptions(tmp_path / "out", **options))
    return curated, read_source(tmp_path / "out").table


@pytest.mark.parametrize("line", ["/{path}\n", "{path} {label}\n"])
def test_listed_images_and_five_unused_ones_for_validation(tmp_path, sun, line):
    curated, table = made(tmp_path, root=sun, lists=lists(tmp_path / "lists", line))
    assert stats(curated.manifest)["images"] == {"train": 12, "val": 10, "test": 8, "open": 0}
    assert set(table["label"]) == set(SCENES.values()) and curated.seed == 0
    numbers = table[table["split"] == "val"]["path"].str.extract(r"sun_(\d+)")[0].astype(int)
    assert numbers.min() >= 10
    assert table["path"].tolist() == made(tmp_path, root=sun, lists=tmp_path / "lists")[1]["path"].tolist()


def test_a_validation_list_is_taken_as_it_is(tmp_path, sun):
    curated, _ = made(tmp_path, root=sun, lists=lists(tmp_path / "lists", val=True))
    assert stats(curated.manifest)["images"]["val"] == 4 and curated.seed is None


def test_an_index_stands_for_the_files(tmp_path, sun):
    index = tmp_path / "index.txt"
    index.write_text("".join(f"{scene}/sun_{n:02d}.jpg\n" for scene in SCENES for n in range(12)))
    curated, _ = made(tmp_path, index=index, lists=lists(tmp_path / "lists"))
    assert stats(curated.manifest)["images"]["val"] == 4
    assert any("Fewer than 5 unused images" in note for note in curated.manifest.notes)


def test_bad_input(tmp_path, sun):
    assert class_of("SUN397/a/arch/indoor/x.jpg") == "arch/indoor"
    with pytest.raises(UserError, match="defined by the lists of Wang et al"):
        made(tmp_path, root=sun)
    with pytest.raises(UserError, match=r"lists .* is not there"):
        made(tmp_path, root=sun, lists=tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no list"):
        made(tmp_path, root=sun, lists=tmp_path / "empty")
    folder = lists(tmp_path / "lists")
    (folder / "SUN_LT_train.txt").write_text("a/abbey/sun_00.jpg\nwhat is this\n")
    with pytest.raises(UserError, match=r"SUN_LT_train\.txt, line 2 names no image"):
        made(tmp_path, root=sun, lists=folder)


def test_listed_open_images_are_no_class(tmp_path, sun):
    folder = lists(tmp_path / "lists")
    (folder / "SUN_LT_open.txt").write_text("odd.jpg -1\n")
    for name in ("odd.jpg", "loose.jpg"):
        (sun / name).touch()
    curated, _ = made(tmp_path, root=sun, lists=folder)
    assert stats(curated.manifest)["images"] == {"train": 12, "val": 10, "test": 8, "open": 1}
    assert curated.manifest.notes == ()
