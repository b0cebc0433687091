import pytest

from oltr.data.curate.open_images import open_table, read_open, read_open_folder
from oltr.errors import UserError
from tests.data.curate.test_cifar_files import (
    NAMES,
    TOY10,
    TOY100,
    both,
    image_folders,
    labels_of,
    official_archive,
    official_folder,
)
from tests.helpers.pictures import class_folders, picture, write_picture


def test_all_images_of_a_folder_named_by_the_class_folder_if_any(tmp_path):
    class_folders(tmp_path / "lorries", {"big lorry": 2})
    write_picture(tmp_path / "loose.png")
    write_picture(tmp_path / "train" / "split not class.png")
    write_picture(tmp_path / "train" / "n01" / "images" / "0.png")  # as TinyImageNet has it
    table = open_table(tmp_path)
    assert sorted(table["label"]) == ["big lorry", "big lorry", "n01", "unknown", "unknown"]
    assert set(table["split"]) == {"open"}
    assert all(path.startswith(str(tmp_path)) for path in table["path"])


def test_only_the_test_images_where_there_are_training_images_too(tmp_path):
    for split in ("Train", "val", "Test"):
        class_folders(tmp_path / split, {"train": 1, "lorry": 2})  # `train` is a CIFAR-100 class as well
    write_picture(tmp_path / "Test" / "images" / "loose.png")
    opened = read_open_folder(tmp_path, {"apple"})
    assert sorted(opened.table["label"]) == ["lorry", "lorry", "train", "unknown"]
    assert all("/Test/" in path for path in opened.table["path"])
    assert opened.sentence.startswith(f"Open: the 4 images of {tmp_path / 'Test'} alone")


def test_a_test_folder_without_training_images_is_a_folder_like_others(tmp_path):
    write_picture(tmp_path / "test" / "0.png")
    write_picture(tmp_path / "more" / "0.png")
    opened = read_open_folder(tmp_path, {"apple"})
    assert sorted(opened.table["label"]) == ["more", "unknown"]
    assert opened.sentence == f"Open: all 2 images of {tmp_path}."


@both
def test_the_other_cifar_gives_its_test_images(tmp_path, cifar):
    other = TOY10 if cifar is TOY100 else TOY100
    archive = official_archive(other, tmp_path)
    official_folder(cifar, tmp_path / "raw" / cifar.folder)  # a folder may hold both: the other one is meant
    expected = [NAMES[other.title][label] for label in labels_of(other, "test")]
    for root in (archive, tmp_path, tmp_path / "raw", tmp_path / "raw" / other.folder):
        opened = read_open(root, NAMES[cifar.title], cifar)
        assert opened.table["label"].tolist() == expected
        assert opened.table["path"].tolist() == list(opened.pictures)
        for index, (path, image) in enumerate(opened.pictures.items()):
            assert path == f"images/open/{expected[index]}/{index:05d}.png"
            assert (image == picture(f"test{index}", 32)).all()
        assert f"{len(expected)} test images of {other.title}" in opened.sentence
    opened = read_open(image_folders(other, tmp_path / "folders"), NAMES[cifar.title], cifar)
    assert sorted(opened.table["label"]) == sorted(expected)
    assert not opened.pictures


def test_a_known_class_is_refused_by_name(tmp_path):
    class_folders(tmp_path / "folder", {"bear": 1, "lorry": 1})
    with pytest.raises(UserError) as caught:
        read_open(tmp_path / "folder", NAMES["CIFAR-100"], TOY100)
    assert "folder has 1 class that training knows too: bear." in str(caught.value)
    assert "Try: --open-root" in str(caught.value)
    with pytest.raises(UserError, match="4 classes that training knows too: apple, bear, train, zebra"):
        read_open(official_archive(TOY100, tmp_path), NAMES["CIFAR-100"], TOY100)


def test_what_cannot_be_an_open_set(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="No images were found"):
        read_open(tmp_path / "empty", [], TOY100)
    with pytest.raises(UserError, match="is not there"):
        read_open(tmp_path / "nowhere", [], TOY100)
    write_picture(tmp_path / "one.png")
    with pytest.raises(UserError, match="no archive of CIFAR-10 or CIFAR-100"):
        read_open(tmp_path / "one.png", [], TOY100)
    archive = official_archive(TOY10, tmp_path)
    archive.write_bytes(archive.read_bytes()[:-5000])
    with pytest.raises(UserError, match="cut off"):
        read_open(archive, [], TOY100)
