import struct
from pathlib import Path

import pytest

from oltr.data.records import BrokenRecord, RecordFile, read_record, record_path, record_place
from oltr.errors import UserError
from tests.helpers.records import MAGIC, face, framed, part, record, write_records

HARD = [
    b"",
    b"x",
    b"ab" + MAGIC + b"cd",  # 2 bytes off the alignment: no part ends here
    MAGIC,
    MAGIC + b"tail!",
    b"head" + MAGIC,
    b"1234" + MAGIC + MAGIC + b"5678" + MAGIC + b"9",
    b"12345678" + MAGIC + b"abc",
]


@pytest.mark.parametrize("label", [7, (7.0,), (7.0, 1.0)])
def test_records_come_back_as_they_were(tmp_path, label):
    """The header has 24 bytes, one label 4: the image stays aligned to 4 in all three."""
    file = tmp_path / "train.rec"
    offsets = write_records(file, {key: record(label, image) for key, image in enumerate(HARD)})
    assert sum(file.read_bytes().count(MAGIC + struct.pack("<I", 1 << 29 | n)) for n in range(60)) >= 5
    labels = (7.0,) if label == 7 else label
    with RecordFile(file) as records:
        walked = list(records.walk())
        for key, image in enumerate(HARD):
            found = read_record(file, offsets[key])
            assert (found.labels, found.image) == (labels, image)
            assert records.info(offsets[key]) == (offsets[key], 7.0, bool(image), found.end)
            assert walked[key] == records.info(offsets[key])
    assert len(walked) == len(HARD)
    assert walked[-1].end == file.stat().st_size


def test_the_reader_agrees_with_bytes_written_out_by_hand(tmp_path):
    file = tmp_path / "a.rec"
    whole = "0a23d7ce 1b000000 00000000 0000a040 0900000000000000 0000000000000000 6a7067 00"
    parted = "0a23d7ce 20000020 02000000 00000000 0100000000000000 0000000000000000 00004040 0000803f"
    file.write_bytes(bytes.fromhex(whole + parted + "0a23d7ce 05000060 68656c6c6f 000000"))
    assert read_record(file, 0) == ((5.0,), b"jpg", 36)
    assert read_record(file, 36) == ((3.0, 1.0), MAGIC + b"hello", 92)


def refused(file, offset):
    with pytest.raises(BrokenRecord) as caught:
        read_record(file, offset)
    assert isinstance(caught.value, UserError)
    assert str(file) in str(caught.value)
    assert f"byte {offset}:" in str(caught.value)
    with RecordFile(file) as records, pytest.raises(BrokenRecord):
        records.info(offset)
    return caught.value.reason


@pytest.mark.parametrize("lost", [1, 4, 30, 60])
def test_a_file_cut_off_anywhere_in_its_last_record(tmp_path, lost):
    file = tmp_path / "train.rec"
    first = framed(record(1, b"image"))
    file.write_bytes((first + framed(record(2, b"a longer image, not a multiple of 4!!!")))[:-lost])
    assert read_record(file, 0).image == b"image"
    assert "cut off" in refused(file, len(first))
    with RecordFile(file) as records, pytest.raises(BrokenRecord, match="cut off"):
        list(records.walk())


def test_what_is_no_record(tmp_path):
    file = tmp_path / "train.rec"
    sound = framed(record(1, b"image"))
    file.write_bytes(sound)
    assert "1d000000 and not 0a23d7ce" in refused(file, 4)
    assert "ends at byte" in refused(file, len(sound))
    assert "ends at byte" in refused(file, 10**17)
    assert "ends at byte" in refused(file, len(sound) - 4)
    for flag in (2, 3, 4, 7):
        file.write_bytes(part(flag, record(1, b"image")))
        assert f"flag {flag}" in refused(file, 0)
    file.write_bytes(part(0, b"short"))
    assert "5 bytes are too few" in refused(file, 0)
    file.write_bytes(part(0, struct.pack("<IfQQ", 4_000_000_000, 0, 0, 0) + b"few labels"))
    assert "34 bytes are too few" in refused(file, 0)


def test_a_record_whose_parts_do_not_follow_each_other(tmp_path):
    file = tmp_path / "train.rec"
    begun = part(1, record(1, b"1234"))
    for rest, reason in [
        (b"", "ends at byte 36"),
        (framed(record(1, b"next")), "flag 0"),
        (part(2, b"1234") + b"no magic here", "not 0a23d7ce"),
    ]:
        file.write_bytes(begun + rest)
        with pytest.raises(BrokenRecord, match=reason):
            read_record(file, 0)


def test_paths_into_record_files(tmp_path):
    file = tmp_path / "train.rec"
    write_records(file, {0: record(0, face("0"))})
    assert record_path("train.rec", 1234) == "train.rec/000000001234.jpg"
    assert record_place(tmp_path / record_path("train.rec", 1234)) == (file, 1234)
    (tmp_path / "folder.rec").mkdir()
    for path in (
        "other.rec/12.jpg",
        "train.idx/12.jpg",
        "train.rec/cat.jpg",
        "train.rec",
        "folder.rec/12.jpg",
    ):
        assert record_place(tmp_path / path) is None
    assert record_place(Path("12.jpg")) is None
