import numpy as np
import pytest
from torch import from_numpy
from torch.nn.functional import interpolate

from oltr.data.curate import CurateOptions, curate
from oltr.data.curate import cifar100_tinyimagenet as module
from oltr.data.curate.card import fact_rows
from oltr.data.curate.small_copies import WAYS
from oltr.data.images import read_image
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


@pytest.fixture
def originals(tmp_path):
    """TinyImageNet's own layout, 64 px; and its pixels."""
    folder = tmp_path / "tiny-imagenet-200"
    paths = [write_picture(folder / "test" / "images" / f"test_{n}.png", 64) for n in range(4)]
    return folder, [read_image(path, 64) for path in paths]


@pytest.mark.parametrize("cifar", [image_folders, official_archive])
@pytest.mark.parametrize("way", WAYS)
def test_small_copies_of_the_originals_are_made_as_published_sets_were(tmp_path, originals, way, cifar):
    (folder, pixels), out = originals, tmp_path / "out"
    options = CurateOptions(out, cifar(TOY100, tmp_path / "cifar"), open_root=folder, open_images=way, seed=3)
    curated = curate(NAME, options)
    made = read_source(out)
    assert made.sizes() == {"train": 120, "val": 0, "test": 12, "open": 4}
    assert all(path.is_file() for split in ("train", "test", "open") for path in made.paths(split))
    copies = [read_image(path, 32) for path in made.paths("open")]
    for copy, original in zip(copies, pixels, strict=True):
        if way == "crop":
            rows = [original[row : row + 32] for row in range(33)]
            assert any((part[:, left : left + 32] == copy).all() for part in rows for left in range(33))
            continue
        image, how = from_numpy(original).permute(2, 0, 1)[None].double(), {"size": (32, 32)}
        how |= {"mode": "nearest-exact"} if way == "nearest" else {"mode": "bilinear", "antialias": False}
        expected = interpolate(image, **how)[0].permute(1, 2, 0).numpy()
        assert np.abs(copy - expected).max() <= 0.5
    assert WAYS[way][1] in curated.recipe[-1] and (curated.seed == 3) == (way == "crop")


def test_crops_depend_on_the_seed(tmp_path, originals):
    root, pictures = image_folders(TOY100, tmp_path / "cifar"), []
    for number, seed in enumerate((0, 0, 1)):
        out = tmp_path / f"out{number}"
        options = CurateOptions(out, root, open_root=originals[0], open_images="crop", seed=seed)
        pictures.append(np.stack(list(curate(NAME, options).pictures.values())))
    assert (pictures[0] == pictures[1]).all() and (pictures[0] != pictures[2]).any()


def test_small_images_have_no_small_copies(tmp_path, tiny_images, originals):
    root, out = image_folders(TOY100, tmp_path / "cifar"), tmp_path / "out"
    with pytest.raises(UserError, match=r"(?s)32 × 32 pixels.*originals, 64 × 64.*without --open-images"):
        curate(NAME, CurateOptions(out, root, open_root=tiny_images, open_images="resized"))
    with pytest.raises(UserError, match=r"(?s)no way of --open-images called.*crop"):
        curate(NAME, CurateOptions(out, root, open_root=originals[0], open_images="crops"))
    with pytest.raises(UserError, match="takes no --open-images"):
        curate("glyphs", CurateOptions(out, open_images="crop"))
    assert not out.exists()
