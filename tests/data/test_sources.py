import os
import subprocess
import sys

import pandas as pd
import pytest

from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.helpers.pictures import class_folders, write_picture


def files_exist(manifest):
    return all(path.is_file() for split in manifest.sizes() for path in manifest.paths(split))


def test_flat_folder_is_split_about_60_20_20(tmp_path):
    class_folders(tmp_path, {"one": 1, "two": 2, "three": 3, "ten": 10, "bär mit hut": 5})
    manifest = read_source(tmp_path)
    sizes = manifest.table.groupby(["label", "split"]).size().unstack(fill_value=0)
    assert sizes.loc["one"].to_dict() == {"test": 0, "train": 1, "val": 0}
    assert sizes.loc["two"].to_dict() == {"test": 1, "train": 1, "val": 0}
    assert sizes.loc["three"].to_dict() == {"test": 1, "train": 1, "val": 1}
    assert sizes.loc["ten"].to_dict() == {"test": 2, "train": 6, "val": 2}
    assert sizes.loc["bär mit hut"].to_dict() == {"test": 1, "train": 3, "val": 1}
    assert any("Split made for you" in note for note in manifest.notes)
    assert files_exist(manifest)


def test_flat_split_is_fixed_by_the_seed_and_by_class(tmp_path):
    class_folders(tmp_path, {"a": 20, "b": 20})
    first, again, other = read_source(tmp_path), read_source(tmp_path), read_source(tmp_path, seed=1)
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    class_folders(tmp_path, {"0 new": 9})
    grown = read_source(tmp_path).table
    pd.testing.assert_frame_equal(grown[grown["label"] != "0 new"].reset_index(drop=True), first.table)


def test_flat_folder_can_stay_whole(tmp_path):
    class_folders(tmp_path, {"a": 5, "b": 5})
    assert read_source(tmp_path, flat="train").sizes() == {"train": 10, "val": 0, "test": 0, "open": 0}


@pytest.mark.parametrize("name", ["open", "unknown"])
def test_open_folder_in_a_flat_folder(tmp_path, name):
    class_folders(tmp_path, {"a": 5, "b": 5})
    write_picture(tmp_path / name / "x.png")
    write_picture(tmp_path / name / "zebra" / "y.png")
    manifest = read_source(tmp_path)
    assert manifest.classes == ("a", "b")
    assert sorted(manifest.rows("open")["label"]) == ["unknown", "zebra"]
    assert any(name in note and "open split" in note for note in manifest.notes)


@pytest.mark.parametrize(("loose", "named"), [("open", "open"), ("unknown", "unknown"), ("unknown", "open")])
def test_split_folders(tmp_path, loose, named):
    class_folders(tmp_path / "train", {"a": 3, "b": 2})
    class_folders(tmp_path / "validation", {"a": 1})
    class_folders(tmp_path / "test", {"a": 1, "b": 1})
    write_picture(tmp_path / loose / "loose.png")
    class_folders(tmp_path / named, {"zebra": 2})
    manifest = read_source(tmp_path)
    assert any(f"{named}/ is the open split" in note for note in manifest.notes)
    assert manifest.sizes() == {"train": 5, "val": 1, "test": 2, "open": 3}
    assert sorted(manifest.rows("open")["label"]) == ["unknown", "zebra", "zebra"]
    assert files_exist(manifest)


def test_a_class_called_train_is_no_split(tmp_path):
    class_folders(tmp_path, {"car": 5, "train": 5, "open": 2})
    manifest = read_source(tmp_path)
    assert manifest.classes == ("car", "train")
    assert manifest.sizes()["open"] == 2


def test_scanning_skips_hidden_and_other_files_and_follows_links_once(tmp_path):
    images = class_folders(tmp_path / "images", {"a": 2, "b": 2, ".cache": 3})
    write_picture(images / "a" / "deep" / "er.JPEG")
    write_picture(images / "a" / ".hidden.png")
    (images / "a" / "notes.txt").write_text("no image")
    (images / "a" / "loop").symlink_to(images / "a", target_is_directory=True)
    elsewhere = class_folders(tmp_path / "elsewhere", {"c": 4}) / "c"
    (images / "c").symlink_to(elsewhere, target_is_directory=True)
    table = read_source(images).table
    assert sorted(table.loc[table["label"] == "a", "path"]) == ["a/0.png", "a/1.png", "a/deep/er.JPEG"]
    assert set(table["label"]) == {"a", "b", "c"}
    assert (table["label"] == "c").sum() == 4


def test_empty_class_folders_and_loose_images_are_noted(tmp_path):
    class_folders(tmp_path, {"a": 3, "b": 3, "nobody": 0})
    write_picture(tmp_path / "loose.png")
    notes = " ".join(read_source(tmp_path).notes)
    assert "Empty: 1 class folder, nobody" in notes
    assert "1 image outside any class folder" in notes


def lists(folder, **contents):
    folder.mkdir(exist_ok=True)
    for split, lines in contents.items():
        (folder / f"Some_LT_{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_released_lists(tmp_path):
    folder = lists(
        tmp_path / "lists",
        train=["a/my dog.jpg 0", "a/2.jpg 10", "a/3.jpg 10", ""],
        val=["v/1.jpg 0"],
        test=["t/1.jpg 10", "t/2.jpg -1"],
        open=["o/ä.jpg -1"],
    )
    manifest = read_source(folder)
    assert manifest.classes == ("0", "10")
    assert manifest.sizes() == {"train": 3, "val": 1, "test": 1, "open": 2}
    assert manifest.paths("train")[0] == folder / "a/my dog.jpg"
    (tmp_path / "images").mkdir()
    assert read_source(folder, root=tmp_path / "images").paths("val") == [tmp_path / "images/v/1.jpg"]


def test_lists_without_train_are_legal(tmp_path):
    manifest = read_source(lists(tmp_path / "lists", val=["v/1.jpg 3"], open=["o/1.jpg -1"]))
    assert manifest.classes == ("3",)
    assert manifest.sizes()["train"] == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("onlyapath.jpg", "no label"),
        ("a.jpg seven", "'seven', which is not an integer"),
        ("a.jpg -1", "label -1 in the train list"),
    ],
)
def test_a_bad_list_line_is_named(tmp_path, line, said):
    folder = lists(tmp_path / "lists", train=["ok.jpg 1", line])
    with pytest.raises(UserError, match="line 2") as refused:
        read_source(folder)
    assert said in str(refused.value)


def test_two_lists_of_a_split_are_refused(tmp_path):
    folder = lists(tmp_path / "lists", train=["a.jpg 1"])
    (folder / "Other_train.txt").write_text("b.jpg 1\n")
    with pytest.raises(UserError, match="two train lists"):
        read_source(folder)


def test_manifest_files_and_their_roots(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "manifest.csv").write_text("path,label,split\na.jpg,NA,train\nb.jpg,007,train\n")
    by_folder = read_source(folder)
    assert by_folder.classes == ("007", "NA")  # names, not missing values or numbers
    assert by_folder.paths("train")[0] == folder / "a.jpg"
    assert read_source(folder / "manifest.csv", root=tmp_path).paths("train")[0] == tmp_path / "a.jpg"
    pd.DataFrame({"path": ["a.jpg"], "label": [4], "split": ["train"], "root": ["images"]}).to_parquet(
        folder / "numbers.parquet"
    )
    recorded = read_source(folder / "numbers.parquet")
    assert recorded.classes == ("4",)
    assert recorded.paths("train") == [folder / "images" / "a.jpg"]
    assert "root" not in recorded.table


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("path;label;split\na;b;train\n", "separate the columns with commas"),
        ("path,label,split,root\na,b,train,x\nc,b,train,y\n", "2 values"),
        ("path,label,split\na,b,train\na,b,c,d,e\n", "cannot be read as a manifest"),
        ("path,label,split\na,b,train,\nc,b,test,\n", "more cells than its first line"),
        ("path,label,Splits\na,b,x\n", "'Splits' → 'split'"),
        ("path,label,part\na,b,train\nc,b,test\n", "'part' → 'split'"),
        ("path,label\na,\nb,-1\n", "without a label"),
    ],
)
def test_bad_manifest_files(tmp_path, content, said):
    file = tmp_path / "set.csv"
    file.write_text(content)
    with pytest.raises(UserError) as refused:
        read_source(file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


def test_a_manifest_without_splits_is_split_as_a_flat_folder_is(tmp_path):
    class_folders(tmp_path / "images", {"a": 12, "b": 7})
    folder = read_source(tmp_path / "images")
    rows = (folder.table["path"] + "," + folder.table["label"]).tolist()
    rows[3:3], rows[9:9] = ["odd/1.png,"], ["odd/2.png,-1"]
    (tmp_path / "images" / "set.csv").write_text("\n".join(["path,label", *rows]))
    manifest = read_source(tmp_path / "images" / "set.csv")
    known = manifest.table[manifest.table["split"] != "open"].reset_index(drop=True)
    assert manifest.split_made and known.equals(folder.table)
    assert manifest.rows("open")["path"].tolist() == ["odd/1.png", "odd/2.png"]
    assert manifest.classes == ("a", "b") and any("open split: 2 images" in note for note in manifest.notes)
    tested = read_source(tmp_path / "images" / "set.csv", flat="test")
    assert tested.sizes() == {"train": 0, "val": 0, "test": 19, "open": 2}


def test_files_that_are_no_source(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    (tmp_path / "latin.csv").write_bytes("path,label,split\nä.jpg,a,train".encode("latin-1"))
    for name, said in [("broken.parquet", "cannot be read"), ("latin.csv", "not UTF-8")]:
        with pytest.raises(UserError, match=said):
            read_source(tmp_path / name)
    with pytest.raises(UserError, match="not a source"):
        read_source(write_picture(tmp_path / "photo.png"))
    with pytest.raises(UserError, match="no file or folder"):
        read_source(tmp_path / "nowhere")


def test_folders_that_are_no_source(tmp_path):
    with pytest.raises(UserError, match="No images were found"):
        read_source(tmp_path)
    (tmp_path / "empty class").mkdir()
    with pytest.raises(UserError, match="No images were found"):
        read_source(tmp_path)
    write_picture(tmp_path / "photo.png")
    with pytest.raises(UserError, match="1 image but no class folders"):
        read_source(tmp_path)


def test_root_is_refused_where_it_means_nothing(tmp_path):
    class_folders(tmp_path / "a set", {"a": 2, "b": 2})
    with pytest.raises(UserError, match="leave --root out"):
        read_source(tmp_path / "a set", root=tmp_path)
    with pytest.raises(UserError, match="not a folder"):
        read_source(tmp_path / "a set", root=tmp_path / "nowhere")


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    class_folders(tmp_path, {"a": 2})
    (tmp_path / "a" / os.fsdecode(b"\xff.png")).write_bytes(b"")
    with pytest.raises(UserError, match="not valid UTF-8"):
        read_source(tmp_path)


def frame(folder, **columns):
    """The images of a folder of class folders as a DataFrame with absolute paths."""
    files = sorted(folder.rglob("*.png"))
    return pd.DataFrame({"path": files, "label": [file.parent.name for file in files], **columns})


def test_a_data_frame_is_a_manifest(tmp_path, monkeypatch):
    class_folders(tmp_path / "images", {"a": 3, "b": 2})
    table = frame(
        tmp_path / "images", split=["train", "train", "test", "train", "test"], site=[1, 1, 2, 2, 3]
    )
    before = table.copy()
    manifest = read_source(table)
    assert manifest.sizes() == {"train": 3, "val": 0, "test": 2, "open": 0} and not manifest.split_made
    assert files_exist(manifest) and manifest.rows("test")["site"].tolist() == [2, 3]
    pd.testing.assert_frame_equal(table, before)
    table["path"] = [path.relative_to(tmp_path / "images") for path in table["path"]]
    assert read_source(table, root=tmp_path / "images").paths("train") == manifest.paths("train")
    monkeypatch.chdir(tmp_path / "images")
    assert read_source(table).paths("train") == manifest.paths("train")
    monkeypatch.chdir(tmp_path)
    assert read_source(table.assign(root="images")).paths("train") == manifest.paths("train")
    with pytest.raises(UserError, match="`root` of the DataFrame has 5 values"):
        read_source(table.assign(root=list("abcde")))


def test_a_data_frame_without_splits_is_split_as_a_flat_folder_is(tmp_path):
    class_folders(tmp_path, {"a": 12, "b": 7})
    folder, table = read_source(tmp_path), frame(tmp_path)
    mixed = table.sample(frac=1, random_state=0).sort_values("label", kind="stable")
    manifest = read_source(table, root=tmp_path)
    assert manifest.table["split"].tolist() == folder.table["split"].tolist() and manifest.split_made
    assert any("Split made for you" in note for note in manifest.notes)
    assert read_source(table, seed=1).fingerprint() != read_source(table).fingerprint()
    assert read_source(mixed, flat="train").sizes()["train"] == 19
    assert any("The DataFrame has no splits" in note for note in read_source(table, flat="test").notes)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"path": ["a.jpg"]}, "lacks the columns label, split"),
        ({"file": ["a.jpg"], "label": ["a"]}, "lacks the column path"),
        ({"path": ["a.jpg", "a.jpg"], "label": ["a", "b"]}, "a.jpg"),
        ({"path": ["a.jpg"], "label": [None]}, "without a label"),
        ({"path": ["a.jpg"], "label": ["a"], "split": ["trian"]}, "'trian'"),
        ({"path": [], "label": [], "split": []}, "no rows"),
    ],
)
def test_bad_data_frames(columns, said):
    with pytest.raises(UserError, match=said):
        read_source(pd.DataFrame(columns))


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of its own name into the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


def test_an_object_named_by_its_module(module, tmp_path, monkeypatch):
    class_folders(tmp_path / "images", {"a": 3, "b": 2})
    name = module(
        "own_frames",
        "import pandas as pd\n"
        "frame = pd.DataFrame({'path': ['images/a/0.png', 'images/b/0.png'], 'label': ['a', 'b']})\n"
        "def made(): return frame.assign(split='train')\n"
        "class Place:\n    items = {'train': [(None, 'x'), (None, 'y')]}\n",
    )
    manifest = read_source(f"{name}:made")
    assert manifest.root == tmp_path and files_exist(manifest)
    assert read_source(f"{name}:frame").split_made
    assert read_source(f"{name}:Place.items").classes == ("x", "y")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert read_source(f"{name}:made", root=manifest.root).fingerprint() == manifest.fingerprint()


def test_a_path_that_looks_like_a_name_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    class_folders(tmp_path / "os:path", {"a": 3, "b": 3})
    assert read_source("os:path").classes == ("a", "b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no attribute 'thing'"),
        ("import a_module_that_is_not_there", "ModuleNotFoundError: .*line 1"),
        (
            "def thing(): return 1 / 0",
            r"thing cannot be made.*ZeroDivisionError: division by zero \(.*line 1",
        ),
        ("def thing(path): pass", "thing cannot be made.*missing 1 required positional argument"),
        ("thing = 'photos/'", "is the path photos/.*that path itself"),
        ("thing = 7", "An object of type int is no source"),
    ],
)
def test_a_name_that_leads_nowhere(module, text, said):
    name = module(f"nowhere_{abs(hash(text))}", text)
    with pytest.raises(UserError, match=f"(?s){said}"):
        read_source(f"{name}:thing")


def test_a_name_without_a_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"(?s)source no_such.module:data.*no module no_such .*install"):
        read_source("no_such.module:data")


def test_files_are_read_without_torch():
    code = "import sys, oltr.data.sources, oltr.data.check, oltr.data.pack; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
