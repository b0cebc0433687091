"""MXNet record files (`train.rec` with its `train.idx`), in which InsightFace keeps faces, without MXNet.

A record is stored in one part, or in several where the magic number occurs in its own bytes:
    magic, flag · 2²⁹ + length, so many bytes, zeros up to a multiple of 4.
Joined by the magic number they are: how many labels, label, id, second id, the labels, the image.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oltr.errors import UserError

MAGIC = struct.pack("<I", 0xCED7230A)
PART = struct.Struct("<4sI")
HEADER = struct.Struct("<IfQQ")
FIRST_LABEL = struct.Struct("<f")
WHOLE, FIRST, MIDDLE, LAST = range(4)  # what part of a record a part is


class BrokenRecord(UserError):
    """A byte of a record file where no sound record begins, and the reason."""

    def __init__(self, file: Path, offset: int, reason: str):
        self.reason = f"no sound record begins at byte {offset}: {reason}"
        super().__init__(f"In {file} {self.reason}.", try_this="copy or download the file anew")


class Record(NamedTuple):
    """The labels of a record, its image as it was encoded, and the byte after it."""

    labels: tuple[float, ...]
    image: bytes
    end: int


class RecordInfo(NamedTuple):
    """What the header of a record says."""

    offset: int
    label: float  # the first
    has_image: bool
    end: int


class RecordFile:
    """An open record file; one for each thread."""

    def __init__(self, path: Path):
        self.path, self.stream = path, path.open("rb")
        self.size = os.fstat(self.stream.fileno()).st_size

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def read(self, offset: int) -> Record:
        """The record that begins at a byte."""
        parts: list[bytes] = []
        flag, end = FIRST, offset
        while flag not in (WHOLE, LAST):
            flag, length = self._part(end, (MIDDLE, LAST) if parts else (WHOLE, FIRST))
            end = self._end(end, length)
            parts.append(self.stream.read(length))
        content = MAGIC.join(parts)
        number, label = self._header(offset, content, len(content))
        begin = HEADER.size + 4 * number
        labels = struct.unpack_from(f"<{number}f", content, HEADER.size) if number else (label,)
        return Record(labels, content[begin:], end)

    def info(self, offset: int) -> RecordInfo:
        """The first label of the record that begins at a byte, without reading its image."""
        flag, length = self._part(offset, (WHOLE, FIRST))
        if flag != WHOLE:  # rare: one record in millions has the magic number inside
            record = self.read(offset)
            return RecordInfo(offset, record.labels[0], bool(record.image), record.end)
        end = self._end(offset, length)
        content = self.stream.read(min(length, HEADER.size + FIRST_LABEL.size))
        number, label = self._header(offset, content, length)
        if number:
            (label,) = FIRST_LABEL.unpack_from(content, HEADER.size)
        return RecordInfo(offset, label, length > HEADER.size + 4 * number, end)

    def walk(self) -> Iterator[RecordInfo]:
        """The header of every record, one after another."""
        offset = 0
        while offset < self.size:
            info = self.info(offset)
            yield info
            offset = info.end

    def _part(self, offset: int, allowed: tuple[int, int]) -> tuple[int, int]:
        if offset + PART.size > self.size:
            raise BrokenRecord(self.path, offset, f"the file ends at byte {self.size}")
        self.stream.seek(offset)
        magic, word = PART.unpack(self.stream.read(PART.size))
        flag, length = word >> 29, word & (2**29 - 1)
        if magic != MAGIC:
            raise BrokenRecord(self.path, offset, f"there is {magic.hex()} and not {MAGIC.hex()}")
        if flag not in allowed:
            raise BrokenRecord(self.path, offset, f"a part with the continuation flag {flag} cannot be here")
        return flag, length

    def _end(self, offset: int, length: int) -> int:
        end = offset + PART.size + length + -length % 4
        if end > self.size:
            raise BrokenRecord(
                self.path, offset, f"it should end at byte {end}, but the file is cut off at {self.size}"
            )
        return end

    def _header(self, offset: int, content: bytes, length: int) -> tuple[int, float]:
        """How many labels follow the header, and the label to use where none does."""
        if length >= HEADER.size:
            number, label, _, _ = HEADER.unpack_from(content)
            if length >= HEADER.size + 4 * number:
                return number, label
        raise BrokenRecord(self.path, offset, f"{length} bytes are too few for its header and labels")


def read_record(file: Path, offset: int) -> Record:
    """One record of a file that is opened for it alone."""
    with RecordFile(file) as records:
        return records.read(offset)


def record_path(file: str, offset: int) -> str:
    """The path by which a manifest names one record of a file: `train.rec/000000123456.jpg`."""
    return f"{file}/{offset:012d}.jpg"


def record_place(path: Path) -> tuple[Path, int] | None:
    """The record file and the byte that such a path names; None for any other path."""
    if path.parent.suffix == ".rec" and re.fullmatch(r"[0-9]{1,18}", path.stem) and path.parent.is_file():
        return path.parent, int(path.stem)
    return None
