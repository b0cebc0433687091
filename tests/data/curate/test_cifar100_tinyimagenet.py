import pytest

from oltr.data.curate import CurateOptions, curate
from oltr.data.curate import cifar100_tinyimagenet as module
from oltr.data.curate.card import fact_rows
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.data.curate.test_cifar_files import TOY100, image_folders, labels_of, official_archive
from tests.helpers.pictures import write_picture

NAME = "cifar100-tinyimagenet"


@pytest.fixture(autouse=True)
def toy_size(monkeypatch):
    monkeypatch.setattr(module, "CIFAR100", TOY100)


@pytest.fixture
def tiny_images(tmp_path):
    for number in range(5):
        write_picture(tmp_path / "tiny" / "test" / f"{number:05d}.png", 32)
    return tmp_path / "tiny"


def test_all_of_cifar_is_taken_and_the_folder_is_open(tmp_path, tiny_images):
    root, out = image_folders(TOY100, tmp_path / "cifar"), tmp_path / "out"
    curated = curate(NAME, CurateOptions(out=out, root=root, open_root=tiny_images))
    made = read_source(out)
    assert made.root == root
    assert made.sizes() == {"train": 120, "val": 0, "test": 12, "open": 5}
    assert made.labels("train").tolist() == labels_of(TOY100, "train")
    assert set(made.rows("open")["label"]) == {"unknown"}
    assert all(path.is_file() for split in ("train", "test", "open") for path in made.paths(split))
    assert ("training images", 120, 50_000) in fact_rows(curated)
    assert ("open images", 5, 10_000) in fact_rows(curated)
    assert curated.pack_size == 32
    assert any("both train and test" in remark for remark in curated.remarks)


def test_the_archive_is_written_out(tmp_path, tiny_images):
    out = tmp_path / "out"
    options = CurateOptions(out=out, root=official_archive(TOY100, tmp_path), open_root=tiny_images, size=64)
    assert curate(NAME, options).pack_size == 64
    made = read_source(out)
    assert made.sizes() == {"train": 120, "val": 0, "test": 12, "open": 5}
    assert all(path.is_file() for split in ("train", "test", "open") for path in made.paths(split))


def test_what_is_missing_or_means_nothing_here_is_said(tmp_path, tiny_images):
    out = tmp_path / "out"
    root = image_folders(TOY100, tmp_path / "cifar")
    with pytest.raises(UserError, match="TinyImageNet is needed"):
        curate(NAME, CurateOptions(out=out, root=root))
    with pytest.raises(UserError, match="CIFAR-100 is needed"):
        curate(NAME, CurateOptions(out=out, open_root=tiny_images))
    with pytest.raises(UserError, match="takes no --imbalance"):
        curate(NAME, CurateOptions(out=out, root=root, open_root=tiny_images, imbalance=100))
    with pytest.raises(UserError, match="is not there"):
        curate(NAME, CurateOptions(out=out, root=root, open_root=tmp_path / "nowhere"))
    write_picture(tiny_images / "bear" / "0.png")
    with pytest.raises(UserError, match="training knows too: bear"):
        curate(NAME, CurateOptions(out=out, root=root, open_root=tiny_images))
    assert not out.exists()
