"""Feature files: what is read, and what is refused."""

import numpy as np
import pytest

from oltr.errors import UserError
from oltr.identify.feature_files import is_feature_source, read_bin, read_features
from oltr.identify.samples import GIVEN, Samples, check_widths, identities, own_rows

FEATURES = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def write_bin(path, matrix, stride=None, kind=5):
    """As MegaFace's tools do: rows, columns, bytes a row, type, then the rows with their padding."""
    rows, columns = matrix.shape
    stride = stride or columns * 4
    path.parent.mkdir(parents=True, exist_ok=True)
    padded = np.zeros((rows, stride // 4), "<f4")
    padded[:, :columns] = matrix
    path.write_bytes(np.array([rows, columns, stride, kind], "<i4").tobytes() + padded.tobytes())
    return path


def write_npz(path, features=FEATURES, labels=("a", "b", "a", ""), **more):
    np.savez(path, features=features, labels=np.asarray(labels), **more)
    return path


def test_npz(tmp_path):
    read = read_features(write_npz(tmp_path / "x.npz"))
    np.testing.assert_array_equal(read.of("meta").numpy(), FEATURES)
    assert read.labels.tolist() == ["a", "b", "a", ""] and read.named.tolist() == [True] * 3 + [False]
    numbers = read_features(write_npz(tmp_path / "y.npz", FEATURES.astype(np.float16), [7, -1, 7, 0]))
    assert numbers.labels.tolist() == [7, -1, 7, 0] and numbers.named.tolist() == [True, False, True, True]
    assert numbers.of(GIVEN).dtype.is_floating_point


def test_npy_is_nobody(tmp_path):
    np.save(tmp_path / "far.npy", FEATURES)
    read = read_features(tmp_path / "far.npy")
    np.testing.assert_array_equal(read.of(GIVEN).numpy(), FEATURES)
    assert not read.named.any() and is_feature_source(tmp_path / "far.npy")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "far.npy").read_bytes()[:-4])
    with pytest.raises(UserError, match="cannot be read"):
        read_features(tmp_path / "cut.npy")
    np.save(tmp_path / "one.npy", FEATURES[0, 0])
    with pytest.raises(UserError, match="a matrix of floats"):
        read_features(tmp_path / "one.npy")


@pytest.mark.parametrize("stride", [12, 16])
def test_bin_with_a_label_list(tmp_path, stride):
    path = write_bin(tmp_path / "faces.bin", FEATURES, stride)
    with pytest.raises(UserError, match=r"no label list .*faces\.txt"):
        read_features(path)
    (tmp_path / "faces.txt").write_text("a\nb\na\n")
    with pytest.raises(UserError, match=r"3 lines.*4 features"):
        read_features(path)
    (tmp_path / "faces.txt").write_text("a\nb\na\n-1\n")
    read = read_features(path)
    np.testing.assert_array_equal(read.of(GIVEN).numpy(), FEATURES)
    assert read.named.tolist() == [True] * 3 + [False]
    (tmp_path / "faces.txt").write_bytes("a \r\nZo\u0085e\r\na\r\n\r\n\r\n".encode())
    assert read_features(path).labels.tolist() == ["a", "Zo\u0085e", "a", ""]
    (tmp_path / "faces.txt").write_bytes(b"Zo\xeb\nb\na\n-1\n")
    with pytest.raises(UserError, match="not UTF-8 text"):
        read_features(path)


def test_folder_of_single_features(tmp_path):
    for row, name in enumerate(["a/1.png_x.bin", "b/1.png_x.bin", "c/d/2_x.bin", "c/d/3_x.bin"]):
        write_bin(tmp_path / name, FEATURES[row][:, None], stride=4)
    assert is_feature_source(tmp_path) and not is_feature_source(tmp_path / "nothing")
    read = read_features(tmp_path)
    np.testing.assert_array_equal(read.of(GIVEN).numpy(), FEATURES)
    assert read.labels.tolist() == ["a", "b", "d", "d"] and read.paths[0] == "a/1.png_x.bin"
    write_bin(tmp_path / "c/d/4_x.bin", FEATURES[0][:2, None])
    with pytest.raises(UserError, match="unequal width"):
        read_features(tmp_path)


def test_bad_bins(tmp_path):
    with pytest.raises(UserError, match="no feature file"):
        read_bin(write_bin(tmp_path / "double.bin", FEATURES, kind=6))
    (tmp_path / "empty.bin").touch()
    with pytest.raises(UserError, match="no feature file"):
        read_bin(tmp_path / "empty.bin")
    whole = write_bin(tmp_path / "cut.bin", FEATURES)
    whole.write_bytes(whole.read_bytes()[:-8])
    with pytest.raises(UserError, match="cut off: 4×3"):
        read_bin(whole)


def test_bad_npz(tmp_path):
    np.savez(tmp_path / "a.npz", feature=FEATURES)
    with pytest.raises(UserError, match=r"(?s)no array called features and none called labels.*feature"):
        read_features(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_text("no archive")
    with pytest.raises(UserError, match="cannot be read"):
        read_features(tmp_path / "b.npz")
    with pytest.raises(UserError, match="There is no feature file"):
        read_features(tmp_path / "c.npz")
    with pytest.raises(UserError, match="4 features but 2 labels"):
        read_features(write_npz(tmp_path / "d.npz", labels=["a", "b"]))
    with pytest.raises(UserError, match="not a list of names"):
        read_features(write_npz(tmp_path / "e.npz", labels=[0.5] * 4))
    with pytest.raises(UserError, match="int64, not floats"):
        read_features(write_npz(tmp_path / "f.npz", features=np.arange(12).reshape(4, 3)))


def test_names_that_are_bytes(tmp_path):
    names = np.array([name.encode() for name in ("Zoë", "b", "Zoë", "")])
    read = read_features(write_npz(tmp_path / "x.npz", labels=names, paths=names))
    assert read.labels.tolist() == read.paths.tolist() == ["Zoë", "b", "Zoë", ""]


@pytest.mark.parametrize("kind", ["f2", ">f4", "f8", ">f8", "g"])
def test_floats_of_every_form(tmp_path, kind):
    np.save(tmp_path / "x.npy", FEATURES.astype(kind))
    for path in (write_npz(tmp_path / "x.npz", FEATURES.astype(kind)), tmp_path / "x.npy"):
        np.testing.assert_allclose(read_features(path).of(GIVEN).float().numpy(), FEATURES, rtol=1e-3)


def test_files_of_another_form_than_their_name(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, FEATURES)
    with (tmp_path / "a.npy").open("wb") as file:
        np.savez(file, features=FEATURES, labels=np.arange(4))
    np.save(tmp_path / "b.npy", np.array(["a", "b"]))
    whole = bytearray(write_npz(tmp_path / "c.npz").read_bytes())
    whole[60:200] = bytes(140)
    (tmp_path / "c.npz").write_bytes(whole)
    write_npz(tmp_path / "d.npz", labels=np.array(["a"] * 4, dtype=object))
    write_npz(tmp_path / "e.npz", labels=np.array([b"\xff"] * 4))
    for name, words in (
        ("a.npz", "numpy.savez"),
        ("a.npy", "cannot be read"),
        ("b.npy", "not floats"),
        ("c.npz", "cannot be read"),
        ("d.npz", r"labels\.astype\(str\)"),
        ("e.npz", "utf-8"),
    ):
        with pytest.raises(UserError, match=words):
            read_features(tmp_path / name)


def test_paths_are_one_for_each_label(tmp_path):
    for paths in (["x", "y"], [["x"]] * 4, [1, 2, 3, 4]):
        with pytest.raises(UserError, match="a name for each of 4 labels"):
            read_features(write_npz(tmp_path / "x.npz", paths=np.array(paths)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_no_numbers(tmp_path, value):
    bad = FEATURES.copy()
    bad[2, 1] = value
    with pytest.raises(UserError, match=r"x\.npz have NaN or infinite values in 1 row: row 2"):
        read_features(write_npz(tmp_path / "x.npz", bad))


def test_unequal_widths(tmp_path):
    wide = read_features(write_npz(tmp_path / "wide.npz"))
    narrow = read_features(write_npz(tmp_path / "narrow.npz", FEATURES[:, :2]))
    with pytest.raises(UserError, match=r"wide\.npz has 3 numbers, .*narrow\.npz has 2"):
        check_widths([wide, narrow], GIVEN)
    (tmp_path / "other").mkdir()
    named_alike = read_features(write_npz(tmp_path / "other" / "wide.npz", FEATURES[:, :2]))
    with pytest.raises(UserError, match="unequal width"):
        check_widths([named_alike, wide], GIVEN)


def test_identities_of_mixed_labels(tmp_path):
    names = read_features(write_npz(tmp_path / "x.npz", labels=["7", "b", "7", ""]))
    numbers = read_features(write_npz(tmp_path / "y.npz", labels=[7, -1, 8, 7]))
    assert [each.tolist() for each in identities([names, numbers])] == [[0, 1, 0, -1], [0, -1, -1, 0]]
    assert [each.tolist() for each in identities([numbers, numbers])] == [[0, -1, 1, 0]] * 2


def test_own_rows():
    def samples(paths, root):
        features = {GIVEN: read_only(len(paths))}
        return Samples("x", features, np.array(["a"] * len(paths)), np.array(paths, dtype=object), root=root)

    def read_only(n):
        import torch

        return torch.ones(n, 2)

    one, other = samples(["a/1", "a/2"], "/x"), samples(["a/2", "a/3"], "/x")
    assert own_rows(one, one).tolist() == [0, 1] and own_rows(one, other).tolist() == [-1, 0]
    assert own_rows(one, samples(["a/2"], "/elsewhere")).tolist() == [-1, -1]
    assert own_rows(one, samples(["../x/a/2", "/x/a/1"], "/y")).tolist() == [1, 0]  # other words for them
    assert own_rows(one, samples(["a/2"], None)).tolist() == [-1, -1]  # not known
