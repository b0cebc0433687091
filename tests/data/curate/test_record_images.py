import numpy as np
import pytest

from oltr.data.curate import record_images as module
from oltr.data.curate.record_images import image_records, read_offsets, read_property
from oltr.data.records import BrokenRecord, read_record
from oltr.errors import UserError
from tests.helpers.records import MAGIC, headless, insightface, record, write_records

COUNTS = [3, 1, 0, 5]


def tiny(key):
    """An image that need not be one; every third has the magic number in it, and so several parts."""
    return f"image {key:>6}".encode() + (MAGIC if int(key) % 3 == 0 else b"")


def by_hand(contents, offsets):
    """(identity, offset) of all images, from the header of each."""
    rows = []
    for key, stored in contents.items():
        number = np.frombuffer(stored[:4], "<u4")[0]
        label = np.frombuffer(stored[24:28] if number else stored[4:8], "<f4")[0]
        if len(stored) > 24 + 4 * number:
            rows.append((int(label), offsets[key]))
    return sorted(rows)


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("kind", ["head", "head, labels of two", "no head", "no head, labels of two"])
def test_identities_with_and_without_head_and_index(tmp_path, index, kind):
    contents = headless(COUNTS, tiny) if kind.startswith("no") else insightface(COUNTS, kind == "head", tiny)
    if kind == "no head, labels of two":
        contents = {key: record((key % 4, 1), tiny(key), key) for key in range(9)}
    offsets = write_records(tmp_path / "train.rec", contents, index)
    calls = []
    found = image_records(tmp_path / "train.rec", lambda done, total: calls.append((done, total)))
    assert list(zip(found.identities.tolist(), found.offsets.tolist(), strict=True)) == by_hand(
        contents, offsets
    )
    assert len(found.offsets) == 9
    assert calls[-1][0] == calls[-1][1] > 0


def test_with_ranges_only_the_first_image_of_each_is_looked_at(tmp_path):
    contents = insightface(COUNTS, image=tiny)
    offsets = write_records(tmp_path / "train.rec", contents)
    damaged = bytearray((tmp_path / "train.rec").read_bytes())
    damaged[offsets[2]] ^= 255
    (tmp_path / "train.rec").write_bytes(damaged)
    assert offsets[2] in image_records(tmp_path / "train.rec").offsets
    damaged[offsets[1]] ^= 255
    (tmp_path / "train.rec").write_bytes(damaged)
    with pytest.raises(BrokenRecord, match="byte 0:"):
        image_records(tmp_path / "train.rec")


def test_keys_in_any_order_and_identities_in_several_ranges(tmp_path):
    contents = insightface([2, 3, 2], image=tiny)
    for key in (6, 7):  # the third range shows the first identity again
        contents[key] = record(0, tiny(key), key)
    mixed = {key: contents[key] for key in np.random.default_rng(0).permutation(sorted(contents)).tolist()}
    offsets = write_records(tmp_path / "train.rec", mixed)
    found = image_records(tmp_path / "train.rec")
    expected = sorted((identity, offsets[key]) for key, identity in enumerate([0, 0, 1, 1, 1, 0, 0], start=1))
    assert list(zip(found.identities.tolist(), found.offsets.tolist(), strict=True)) == expected


def test_keys_that_float32_cannot_tell_apart_are_not_trusted(tmp_path, monkeypatch):
    contents = insightface([2, 2], image=tiny)
    contents[0] = record((1, 6))  # as if rounded
    write_records(tmp_path / "train.rec", contents)
    monkeypatch.setattr(module, "EXACT", 5)
    assert image_records(tmp_path / "train.rec").identities.tolist() == [0, 0, 1, 1]


def test_a_cut_off_file_is_found_at_once(tmp_path):
    file = tmp_path / "train.rec"
    offsets = write_records(file, insightface(COUNTS, image=tiny))
    whole = file.read_bytes()
    file.write_bytes(whole[:-4])
    with pytest.raises(BrokenRecord, match=f"byte {max(offsets.values())}: .*cut off"):
        image_records(file)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        UserError, match=r"begins at byte \d+\.\nThe record file has \d+ bytes: it is cut off"
    ):
        image_records(file)
    file.with_suffix(".idx").unlink()
    with pytest.raises(BrokenRecord, match=r"cut off|ends at byte"):
        image_records(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("0\t0\nkey\t40\n", r"Line 2 of the index .*key"),
        ("0\t0\n1\n", "Line 2"),
        ("0\t0\t9\n1\t40\t9\n", "Line 1"),
        ("0\t0\n1\t40\t5\n", "Line 2"),
        ("0 0\n1 40\n", "Line 1"),
        ("0\t0\n1\t99999999999999999999\n", "Line 2"),
        ("0\t0\n1\t4.5\n", "Line 2"),
        ("0\t0\n0\t40\n", "key 0 twice"),
        ("0\t0\n1\t-8\n", "record 1 begins at byte -8"),
        ("0\t0\n1\t1000\n", "record 1 begins at byte 1000"),
        ("\0\x01\x02", "Line 1"),
    ],
)
def test_an_index_that_is_none(tmp_path, text, message):
    (tmp_path / "train.idx").write_text(text)
    with pytest.raises(UserError, match=message) as refused:
        read_offsets(tmp_path / "train.idx", size=1000)
    assert str(tmp_path / "train.idx") in str(refused.value)


def test_an_index_with_foreign_line_ends(tmp_path):
    (tmp_path / "train.idx").write_bytes(b"3\t20\r\n1\t0\r\n")
    keys, offsets = read_offsets(tmp_path / "train.idx", size=30)
    assert (keys.tolist(), offsets.tolist()) == ([1, 3], [0, 20])


def test_an_index_that_stops_early(tmp_path):
    file = tmp_path / "train.rec"
    write_records(file, headless(COUNTS, tiny))
    lines = file.with_suffix(".idx").read_text().splitlines(keepends=True)
    file.with_suffix(".idx").write_text("".join(lines[:-1]))
    with pytest.raises(UserError, match="does not list all"):
        image_records(file)


@pytest.mark.parametrize(
    ("key", "labels", "message"),
    [
        (0, (10, 40), "from 10 to 39, but they go from 1 to 13"),
        (11, (0, 3), "from 0 to 2, but they go from 1 to 9"),
        (11, (4, 14), "from 4 to 13, but they go from 1 to 9"),
        (11, (5, 4), "from 5 to 3"),
        (11, (4.5, 6), "no range of keys"),
        (11, (float("nan"), 6), "no range of keys"),
        (11, 4, "no range of keys"),
        (11, (3, 5), "share the image with the key 3"),
    ],
)
def test_ranges_that_cannot_be(tmp_path, key, labels, message):
    contents = insightface(COUNTS, image=tiny)
    contents[key] = record(labels, key=key)
    offsets = write_records(tmp_path / "train.rec", contents)
    with pytest.raises(UserError, match=message) as refused:
        image_records(tmp_path / "train.rec")
    assert "train.rec" in str(refused.value)
    if "share" not in message:
        assert f"byte {offsets[key]}:" in str(refused.value)


def test_an_index_that_lacks_an_image(tmp_path):
    contents = insightface(COUNTS, image=tiny)
    del contents[5]
    write_records(tmp_path / "train.rec", contents)
    with pytest.raises(UserError, match="lacks the key 5"):
        image_records(tmp_path / "train.rec")


@pytest.mark.parametrize("label", [float("nan"), float("inf"), 0.5, -1, 1e30])
def test_a_label_that_is_no_identity(tmp_path, label):
    offsets = write_records(tmp_path / "train.rec", {0: record(1, b"a"), 1: record(label, b"b")})
    with pytest.raises(BrokenRecord, match=f"byte {offsets[1]}: its label .* is no identity"):
        image_records(tmp_path / "train.rec")


def test_unreadable_files_are_the_users_to_mend(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        image_records(tmp_path / "train.rec")
    write_records(tmp_path / "train.rec", headless([2, 2], tiny), index=False)
    (tmp_path / "train.idx").mkdir()
    with pytest.raises(UserError, match=r"train\.idx cannot be read"):
        image_records(tmp_path / "train.rec")


def test_property(tmp_path):
    file = tmp_path / "train.rec"
    assert read_property(file) is None
    (tmp_path / "property").write_text("85742,112,112\n")
    assert read_property(file) == 85_742
    (tmp_path / "property").write_bytes(b"\xff\xfe")
    assert read_property(file) is None


def test_the_head_itself_holds_no_image(tmp_path):
    offsets = write_records(tmp_path / "train.rec", insightface([1, 1], image=tiny))
    assert read_record(tmp_path / "train.rec", offsets[0])[:2] == ((3.0, 5.0), b"")
