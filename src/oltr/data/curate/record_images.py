"""The images of a record file and their identities, found through the index beside the file."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from oltr.console import Progress
from oltr.data.records import BrokenRecord, RecordFile, RecordInfo
from oltr.errors import UserError

EXACT = 2**24  # keys and identities are written as float32, which rounds whole numbers above this
WITHOUT_INDEX = "move it away: the records are then found without it, more slowly"


class ImageRecords(NamedTuple):
    """The images of a record file by identity, then by place."""

    offsets: np.ndarray  # n, the byte that each one's record begins at
    identities: np.ndarray  # n


def image_records(file: Path, progress: Progress | None = None) -> ImageRecords:
    """Every image of a record file, found through the index beside it or else by walking through the file."""
    try:
        with RecordFile(file) as records:
            index = file.with_suffix(".idx")
            if not index.exists():
                return _by_own_labels(records, records.walk(), progress)
            keys, offsets = read_offsets(index, records.size)
            _check_end(records, index, int(offsets.max()))
            if keys[0] == 0:
                head = records.read(int(offsets[0]))
                # Record 0 of InsightFace's files is no image: it has the keys of the identities' records.
                if not head.image and len(head.labels) > 1 and head.labels[1] <= EXACT:
                    return _by_ranges(records, keys, offsets, progress)
            listed = (records.info(offset) for offset in np.sort(offsets).tolist())
            return _by_own_labels(records, listed, progress)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None


def read_offsets(index: Path, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys in rising order (n) and where their records begin (n), from an index of a file of `size` bytes."""
    try:
        table = pd.read_csv(index, sep="\t", header=None, dtype=np.int64)
    except OSError as error:
        raise UserError(f"The index {index} cannot be read: {error.strerror}.") from None
    except (ValueError, OverflowError):
        raise _not_pairs(index) from None
    if table.shape[1] != 2:
        raise _not_pairs(index)
    table = table.set_axis(["key", "offset"], axis=1).sort_values("key", kind="stable")
    keys, offsets = table["key"].to_numpy(), table["offset"].to_numpy()
    if (twice := np.flatnonzero(keys[1:] == keys[:-1])).size:
        raise UserError(f"The index {index} has the key {keys[twice[0]]} twice.", try_this=WITHOUT_INDEX)
    if (outside := np.flatnonzero((offsets < 0) | (offsets >= size))).size:
        row = outside[0]
        raise UserError(
            f"The index {index} says that record {keys[row]} begins at byte {offsets[row]}.",
            f"The record file has {size} bytes: it is cut off, or the index is another file's.",
            "copy or download both anew",
        )
    return keys, offsets


def read_property(file: Path) -> int | None:
    """The number of identities in the file `property` beside a record file (`85742,112,112`), if any."""
    try:
        found = re.match(r"\s*([0-9]+)\s*,", (file.parent / "property").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return int(found[1]) if found else None


def _by_own_labels(
    records: RecordFile, infos: Iterator[RecordInfo], progress: Progress | None
) -> ImageRecords:
    """Images that are each labelled with their identity; progress counts bytes."""
    offsets, identities = array("q"), array("q")
    for info in infos:
        if info.has_image:
            offsets.append(info.offset)
            identities.append(_identity(records, info))
        if progress is not None:
            progress(info.end, records.size)
    return _in_order(np.array(offsets, dtype=np.int64), np.array(identities, dtype=np.int64))


def _by_ranges(
    records: RecordFile, keys: np.ndarray, offsets: np.ndarray, progress: Progress | None
) -> ImageRecords:
    """Images of which only the first of each range of keys is looked at; progress counts the ranges."""
    begin, end = _range(records, int(offsets[0]), int(keys[-1]) + 1)
    where = _offsets_of(records, keys, offsets, np.arange(begin, end))
    ranges = np.array([_range(records, offset, begin) for offset in where.tolist()]).reshape(-1, 2)
    sizes = ranges[:, 1] - ranges[:, 0]
    ranges, sizes = ranges[sizes > 0], sizes[sizes > 0]
    _check_apart(records, ranges[np.argsort(ranges[:, 0])])
    first_rows = np.cumsum(sizes) - sizes
    images = np.arange(sizes.sum()) + np.repeat(ranges[:, 0] - first_rows, sizes)
    found = _offsets_of(records, keys, offsets, images)
    identities = np.empty(len(ranges), dtype=np.int64)
    for row, offset in enumerate(found[first_rows].tolist()):
        identities[row] = _identity(records, records.info(offset))
        if progress is not None:
            progress(row + 1, len(ranges))
    return _in_order(found, np.repeat(identities, sizes))


def _in_order(offsets: np.ndarray, identities: np.ndarray) -> ImageRecords:
    order = np.lexsort((offsets, identities))
    return ImageRecords(offsets[order], identities[order])


def _identity(records: RecordFile, info: RecordInfo) -> int:
    if not info.label.is_integer() or not 0 <= info.label <= EXACT:
        raise BrokenRecord(records.path, info.offset, f"its label {info.label} is no identity")
    return int(info.label)


def _range(records: RecordFile, offset: int, limit: int) -> tuple[int, int]:
    """The keys from the first label of a record up to, but not with, the second."""
    labels = records.read(offset).labels
    if len(labels) < 2 or not all(label.is_integer() for label in labels[:2]):
        raise BrokenRecord(records.path, offset, f"its labels {labels} are no range of keys")
    begin, end = int(labels[0]), int(labels[1])
    if not 1 <= begin <= end <= limit:
        raise BrokenRecord(
            records.path,
            offset,
            f"it names the keys from {begin} to {end - 1}, but they go from 1 to {limit - 1}",
        )
    return begin, end


def _check_apart(records: RecordFile, ranges: np.ndarray) -> None:
    """Refuse an image of two identities; the ranges (n, 2) are in rising order."""
    if (shared := np.flatnonzero(ranges[1:, 0] < ranges[:-1, 1])).size:
        key = ranges[shared[0] + 1, 0]
        raise UserError(f"Two identities of {records.path} share the image with the key {key}.")


def _offsets_of(records: RecordFile, keys: np.ndarray, offsets: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where the records of the wanted keys begin; all keys must be there."""
    rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    if (lacking := np.flatnonzero(keys[rows] != wanted)).size:
        index = records.path.with_suffix(".idx")
        raise UserError(
            f"The index {index} lacks the key {wanted[lacking[0]]}.",
            f"The record at byte {offsets[0]} of {records.path.name} leads to it.",
            WITHOUT_INDEX,
        )
    return offsets[rows]


def _check_end(records: RecordFile, index: Path, last: int) -> None:
    """Refuse a truncated file: the last record must be whole and end with the file."""
    end = records.read(last).end
    if end != records.size:
        raise UserError(
            f"The index {index} does not list all of {records.path.name}.",
            f"Its last record ends at byte {end}, the file at byte {records.size}.",
            WITHOUT_INDEX,
        )


def _not_pairs(index: Path) -> UserError:
    """The error for an index that is not made of `key<TAB>offset` lines; its first other line is named."""
    form = "Each line should be a key, a tab and the byte that its record begins at."
    with index.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not re.fullmatch(rb"[0-9]{1,18}\t[0-9]{1,18}\s*", line):
                return UserError(f"Line {number} of the index {index} is {line[:40]!r}.", form, WITHOUT_INDEX)
    return UserError(f"The index {index} is empty.", form, WITHOUT_INDEX)
