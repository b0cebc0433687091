import shutil

import numpy as np
import pytest
import torch

from oltr.data.check import check
from oltr.data.curate import CurateOptions
from oltr.data.curate import ms1m_lt as module
from oltr.data.curate.ms1m_lt import curate_ms1m_lt, draw
from oltr.data.curate.write import write_curation
from oltr.data.image_access import Images
from oltr.data.pack import open_pack, write_pack
from oltr.data.sources import read_source
from oltr.errors import UserError
from tests.helpers.pictures import class_folders, picture
from tests.helpers.records import headless, insightface, write_records

COUNTS = [40, 3, 25, 2, 30]
KEPT = 15  # of 100 images, by the paper's share of 887,500 of 5,822,653


def options(tmp_path, root, **more):
    return CurateOptions(out=tmp_path / "out", root=root, **more)


def written(tmp_path, root, out="out", **more):
    curated = curate_ms1m_lt(options(tmp_path, root, **more))
    write_curation(curated, tmp_path / out)
    return curated, (tmp_path / out / "manifest.csv").read_bytes()


@pytest.fixture
def faces(tmp_path):
    """A folder with a record file as InsightFace's, and which key each record's byte belongs to."""
    offsets = write_records(tmp_path / "faces" / "train.rec", insightface(COUNTS))
    (tmp_path / "faces" / "property").write_text("5,112,112")
    return tmp_path / "faces", {offset: key for key, offset in offsets.items()}


def test_records_to_manifest_pixels_check_and_pack(tmp_path, faces):
    root, key_at = faces
    curated, _ = written(tmp_path, root)
    made = read_source(tmp_path / "out")
    assert made.root == root
    assert made.sizes() == {"train": KEPT, "val": 0, "test": 0, "open": 0}
    first_keys = np.cumsum([1, *COUNTS])
    keys = [key_at[int(path.stem)] for path in made.paths("train")]
    for key, label in zip(keys, made.table["label"], strict=True):
        assert first_keys[int(label)] <= key < first_keys[int(label) + 1]
    assert keys == sorted(keys)
    report = check(made)
    assert (report.images, report.problems) == (KEPT, ())
    assert not any(finding.kind.startswith("duplicates") for finding in report.warnings)
    pack = open_pack(write_pack(made, 24, tmp_path / "faces.pack"))
    for image, key in zip(pack.images, keys, strict=True):
        np.testing.assert_array_equal(image, picture(str(key), 24))
    assert curated.pack_size == 112
    assert curated.published["images"]["train"] == 887_500
    assert any("MegaFace" in sentence for sentence in curated.recipe)
    assert "15 of 100 images of 5 identities, the paper's share (887,500 of 5,822,653)" in curated.recipe[0]
    assert any("rounded" in remark for remark in curated.remarks)
    left = len(COUNTS) - len(made.classes)
    assert f"{left} of the 5 identities were left without an image." in curated.remarks
    assert not any("property" in remark for remark in curated.remarks)


def test_worker_processes_read_from_the_record_file(tmp_path, faces):
    root, key_at = faces
    manifest = curate_ms1m_lt(options(tmp_path, root)).manifest
    files = manifest.paths("train")
    images = Images(24, manifest.labels("train"), files=files)
    order = [np.arange(8), np.arange(8, KEPT)]
    pixels = torch.cat(list(images.batches(order, torch.device("cpu"), workers=2)))
    for image, file in zip(pixels.permute(0, 2, 3, 1), files, strict=True):
        np.testing.assert_array_equal(image, picture(str(key_at[int(file.stem)]), 24))


def test_the_same_seed_gives_the_same_bytes_however_the_images_are_found(tmp_path, faces):
    root, _ = faces
    _, expected = written(tmp_path, root)
    assert written(tmp_path, root)[1] == expected
    assert written(tmp_path, root / "train.rec")[1] == expected
    lines = (root / "train.idx").read_text().splitlines(keepends=True)
    (root / "train.idx").write_text("".join(reversed(lines)))
    assert written(tmp_path, root)[1] == expected
    (root / "train.idx").unlink()
    assert written(tmp_path, root)[1] == expected
    assert written(tmp_path, root, seed=1)[1] != expected


def test_records_without_ranges(tmp_path):
    write_records(tmp_path / "faces" / "train.rec", headless(COUNTS))
    manifest = curate_ms1m_lt(options(tmp_path, tmp_path / "faces")).manifest
    assert len(manifest.table) == KEPT
    assert check(manifest).problems == ()


def test_identity_folders_and_an_index_of_them(tmp_path):
    root = class_folders(tmp_path / "faces", {f"m.{number}": size for number, size in enumerate(COUNTS)})
    shutil.copy(root / "m.0" / "0.png", root / "loose.png")
    curated, expected = written(tmp_path, root)
    made = read_source(tmp_path / "out")
    assert made.sizes()["train"] == KEPT
    assert [path.parent.name for path in made.paths("train")] == made.table["label"].tolist()
    assert check(made).problems == ()
    assert any("1 image outside" in note for note in curated.manifest.notes)
    names = sorted((str(path.relative_to(root)) for path in root.rglob("*.png")), reverse=True)
    (tmp_path / "index.txt").write_text("\n".join(names))
    shutil.rmtree(root)
    again, same = written(tmp_path, root, index=tmp_path / "index.txt")
    assert same == expected
    assert again.manifest.fingerprint() == curated.manifest.fingerprint()


def test_folders_below_folders_are_identities_by_their_whole_path(tmp_path):
    for half in ("a", "b"):
        class_folders(tmp_path / "faces" / half, {"1": 20, "2": 20})
    manifest = curate_ms1m_lt(options(tmp_path, tmp_path / "faces")).manifest
    assert set(manifest.classes) <= {"a/1", "a/2", "b/1", "b/2"}
    assert len(manifest.table) == 12


def slow_draw(codes, total, seed):
    u = np.random.default_rng(seed).random(len(codes)).tolist()
    sizes = {code: codes.tolist().count(code) for code in set(codes.tolist())}
    ranked = sorted(range(len(codes)), key=lambda row: u[row] / sizes[codes[row]])
    return sorted(ranked[:total])


def test_the_draw_equals_a_loop():
    codes = np.repeat(np.arange(5), COUNTS)
    for seed in range(5):
        assert draw(codes, KEPT, seed).tolist() == slow_draw(codes, KEPT, seed)


def test_the_share_kept_is_proportional_to_the_size():
    """1000 identities of each size: the share kept of n images is c · n for one c."""
    sizes = np.array([5, 10, 20, 40])
    codes = np.repeat(np.arange(4000), np.repeat(sizes, 1000))
    kept = draw(codes, 10_000, seed=0)
    assert len(set(kept.tolist())) == 10_000
    group = np.repeat(np.arange(4), 1000)[codes[kept]]
    shares = np.bincount(group) / (1000 * sizes)
    expected = sizes * 10_000 / (1000 * (sizes**2).sum())
    np.testing.assert_allclose(shares, expected, rtol=0.1)


def test_the_whole_source_gives_the_papers_total(tmp_path, faces, monkeypatch):
    monkeypatch.setattr(module, "MS1M_IMAGES", 100)
    monkeypatch.setattr(module, "KEPT", 31)
    curated = curate_ms1m_lt(options(tmp_path, faces[0]))
    assert len(curated.manifest.table) == 31
    assert curated.recipe[0] == "Training: 31 of 100 images of 5 identities."


def test_another_number_of_identities_than_told_is_remarked(tmp_path, faces):
    root, _ = faces
    (root / "property").write_text("85742,112,112")
    remarks = curate_ms1m_lt(options(tmp_path, root, size=64)).remarks
    assert any("85,742" in remark for remark in remarks)


def test_refusals(tmp_path, faces):
    root, _ = faces
    one, few = class_folders(tmp_path / "one", {"a": 20}), class_folders(tmp_path / "few", {"a": 2, "b": 1})
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no records")
    for given, message in [
        (options(tmp_path, None), "--root"),
        (options(tmp_path, tmp_path / "nowhere"), "nowhere"),
        (options(tmp_path, tmp_path / "notes.txt"), "no record file"),
        (options(tmp_path, tmp_path / "empty"), "No images were found"),
        (options(tmp_path, one), "has 1"),
        (options(tmp_path, few), "none would be kept"),
        (options(tmp_path, root, imbalance=10), "takes no --imbalance"),
    ]:
        with pytest.raises(UserError, match=message):
            curate_ms1m_lt(given)
    assert curate_ms1m_lt(options(tmp_path, root, size=64)).pack_size == 64
