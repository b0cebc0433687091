import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oltr.data.check import check
from oltr.data.group_split import split_by_group
from oltr.data.groups import find_groups, straddling
from oltr.data.manifest import Manifest
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.helpers.pictures import touch
from tests.helpers.scenes import copies, scene


def frame(groups, **columns):
    """One image of each (class, site) entry."""
    rows = [(f"{label}/{number}.png", label, site) for number, (label, site) in enumerate(groups)]
    return pd.DataFrame(rows, columns=["path", "label", "site"]).assign(**columns)


def many_sites(seed=0, images=400):
    rng = np.random.default_rng(seed)
    return frame([(f"c{int(8 * rng.random() ** 2)}", f"site {rng.integers(40)}") for _ in range(images)])


def groups_per_split(manifest, column="site"):
    known = manifest.table[manifest.table["split"] != "open"]
    return known.groupby(column)["split"].nunique()


def test_every_group_is_in_one_split_and_every_class_is_trained():
    manifest = split_by_group(read_source(many_sites()), "site")
    assert (groups_per_split(manifest) == 1).all()
    assert (manifest.train_counts() > 0).all()
    sizes = manifest.sizes()
    assert 0.5 < sizes["train"] / 400 < 0.7 and min(sizes["val"], sizes["test"]) > 60
    notes = " ".join(manifest.notes)
    assert "by site: 40 groups" in notes and "of each class" not in notes
    assert manifest.split_kept and not straddling(manifest, find_groups(manifest, "site"))
    assert manifest.fingerprint() == split_by_group(read_source(many_sites()), "site").fingerprint()
    assert manifest.fingerprint() != split_by_group(read_source(many_sites()), "site", seed=1).fingerprint()


def test_a_class_of_one_group_is_trained_and_named():
    images = [(label, f"s{number}") for number in range(5) for label in "ab" for _ in range(3)]
    images += [("rare", "s3")] * 4
    manifest = split_by_group(read_source(frame(images)), "site")
    assert set(manifest.table.loc[manifest.table["label"] == "rare", "split"]) == {"train"}
    assert any("1 class without a test image" in note and "rare" in note for note in manifest.notes)


def test_a_group_larger_than_a_split_is_told():
    images = [(label, "big") for label in "ab" for _ in range(20)]
    images += [(label, f"s{number}") for label in "ab" for number in range(15)]
    notes = split_by_group(read_source(frame(images)), "site").notes
    assert any("One group, big, holds 57 % of the images" in note for note in notes)


def test_open_images_stay_and_images_without_a_group_are_alone():
    table = frame([("a", ""), ("a", ""), ("a", ""), ("b", "x"), ("b", "y"), ("b", "z"), ("", "x")])
    manifest = split_by_group(read_source(table), "site")
    assert manifest.sizes() == {"train": 2, "val": 2, "test": 2, "open": 1}


def test_when_nothing_can_be_tested():
    with pytest.raises(UserError, match="No image can be set aside for testing when grouped by site"):
        split_by_group(read_source(frame([("a", "x"), ("b", "x"), ("c", "y"), ("c", "y")])), "site")


def test_an_unknown_column_is_named_beside_those_there_are():
    with pytest.raises(UserError, match=r"(?s)'camera'.*the columns site.*near-duplicates"):
        find_groups(read_source(many_sites()), "camera")


def test_splits_of_the_source_are_kept_or_refused():
    images = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "z")]
    torn = read_source(frame(images, split=["train", "train", "test", "test"]))
    assert split_by_group(torn, "site").table.equals(torn.table)
    torn = read_source(frame(images, split=["train", "val", "train", "train"]))
    assert straddling(torn, find_groups(torn, "site")) == {"x": ["train", "val"]}
    with pytest.raises(UserError, match=r"(?s)1 group of site .*x \(train, val\).*--folds"):
        split_by_group(torn, "site")


def test_the_open_split_does_not_tear_a_group():
    manifest = read_source(frame([("a", "x"), ("b", "x"), ("", "x")], split=["train", "train", "open"]))
    assert straddling(manifest, find_groups(manifest, "site")) == {}


def test_folders_inside_class_folders(tmp_path):
    for label in "ab":
        touch(
            *(tmp_path / label / f"site{site}" / "2024" / f"{n}.jpg" for site in range(6) for n in range(4))
        )
        touch(tmp_path / label / "loose.jpg")
    manifest = read_source(tmp_path)
    groups = find_groups(manifest, "folder")
    assert len(groups) == 6 + 2
    sites = manifest.table["path"].str.extract(r"(site\d)")[0]
    split = split_by_group(manifest, "folder").table["split"]
    assert (split.groupby(sites).nunique() == 1).all() and set(split) == {"train", "val", "test"}


def test_class_folders_without_folders(tmp_path):
    touch(*(tmp_path / label / f"{n}.jpg" for label in "ab" for n in range(3)))
    with pytest.raises(UserError, match="hold no folders to group by"):
        find_groups(read_source(tmp_path), "folder")


def photos_with_copies(folder):
    """Two classes of six scenes, each with three altered copies; three plain pictures, two of them alike."""
    for number in range(12):
        label = folder / "ab"[number % 2]
        label.mkdir(parents=True, exist_ok=True)
        scene(number).save(label / f"{number}.png")
        for kind in ("encoded", "smaller", "brighter"):
            copies(scene(number))[kind].save(label / f"{number} {kind}.png")
    for name, colour in (("x", "red"), ("y", "red"), ("z", "blue")):
        Image.new("RGB", (20, 20), colour).save(folder / "a" / f"plain {name}.png")
    return folder


def test_near_duplicates_as_groups(tmp_path):
    manifest = read_source(photos_with_copies(tmp_path))
    groups = find_groups(manifest, "near-duplicates")
    scenes = manifest.table["path"].str.extract(r"(\d+)")[0]
    assert pd.Series(groups.names).groupby(scenes).nunique().tolist() == [1] * 12
    assert len(groups) == 12 + 2  # the plain ones: two of the same bytes, one of others
    before = [finding for finding in check(manifest).warnings if "across" in finding.kind]
    assert "--group-by near-duplicates" in str(before[0])
    after = check(split_by_group(manifest, "near-duplicates"), groups=groups)
    kinds = {finding.kind for finding in (*after.problems, *after.warnings)}
    assert "near_duplicates_across_splits" not in kinds and "groups_across_splits" not in kinds
    assert "near_duplicates_within_split" in kinds and "plain_images" in kinds


def test_what_check_says_of_near_duplicates(tmp_path):
    table = []
    for split, label, number, kind in [
        ("train", "a", 0, None),
        ("test", "a", 0, "encoded"),
        ("train", "b", 1, None),
        ("val", "b", 1, "smaller"),
        ("train", "a", 2, None),
        ("train", "b", 2, "brighter"),
        ("test", "b", 3, None),
    ]:
        path = f"{split}{number}{kind}.png"
        (scene(number) if kind is None else copies(scene(number))[kind]).save(tmp_path / path)
        table.append((path, label, split))
    table = pd.DataFrame(table, columns=["path", "label", "split"])
    report = check(Manifest.build(table, tmp_path))
    assert report.problems == ()
    found = {finding.kind: finding for finding in report.warnings}
    across = found["near_duplicates_across_splits"]
    assert across.items[0] == "train0None.png (train) ≈ test0encoded.png (test)" and len(across.items) == 2
    assert "2 pairs" in str(across) and "1 of them between train and test" in str(across)
    assert found["near_duplicates_within_split"].items == ("train2None.png ≈ train2brighter.png",)
    assert found["near_duplicates_conflicting_labels"].items == (
        "train2None.png (a) ≈ train2brighter.png (b)",
    )
    pairs = report.to_json()["near_duplicates"]
    assert len(pairs) == 3 and pairs[0]["images"][1] == {
        "path": "test0encoded.png",
        "split": "test",
        "label": "a",
    }
    assert all(pair["distance"] <= 11 and pair["similarity"] >= 0.9 for pair in pairs)


def test_check_tells_groups_across_splits():
    images = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")]
    manifest = read_source(frame(images, split=["train", "train", "train", "test"]))
    problems = {found.kind: found for found in check(manifest, groups=find_groups(manifest, "site")).problems}
    torn = problems["groups_across_splits"]
    assert torn.items == ("y (train, test)",) and "1 group of site" in torn.message
