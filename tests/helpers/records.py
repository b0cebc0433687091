"""MXNet record files for tests, written after the format's description and apart from our reader."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image

from tests.helpers.pictures import picture

MAGIC = b"\x0a\x23\xd7\xce"


def framed(content: bytes) -> bytes:
    """A record's bytes as they stand in the file: parted at each aligned magic number."""
    cuts = [at for at in range(0, len(content) - 3, 4) if content[at : at + 4] == MAGIC]
    pieces = [
        content[begin:end]
        for begin, end in zip([0, *(cut + 4 for cut in cuts)], [*cuts, len(content)], strict=True)
    ]
    flags = [0] if len(pieces) == 1 else [1, *[2] * (len(pieces) - 2), 3]
    return b"".join(part(flag, piece) for flag, piece in zip(flags, pieces, strict=True))


def part(flag: int, content: bytes) -> bytes:
    """One part of a record, whether it makes sense or not."""
    return MAGIC + struct.pack("<I", flag << 29 | len(content)) + content + b"\0" * (-len(content) % 4)


def record(label: float | Sequence[float], image: bytes = b"", key: int = 0) -> bytes:
    """Header, labels and image of a record; a single number is written into the header."""
    if isinstance(label, (int, float)):
        return struct.pack("<IfQQ", 0, label, key, 0) + image
    return struct.pack("<IfQQ", len(label), 0, key, 0) + struct.pack(f"<{len(label)}f", *label) + image


def face(key: str, size: int = 24) -> bytes:
    """A PNG file, so that its pixels can be compared."""
    buffer = io.BytesIO()
    Image.fromarray(picture(key, size)).save(buffer, "PNG")
    return buffer.getvalue()


def write_records(file: Path, contents: Mapping[int, bytes], index: bool = True) -> dict[int, int]:
    """A record file of key → content in the order given, its index, and where each key's record begins."""
    file.parent.mkdir(parents=True, exist_ok=True)
    offsets, stored = {}, b""
    for key, bytes_ in contents.items():
        offsets[key] = len(stored)
        stored += framed(bytes_)
    file.write_bytes(stored)
    if index:
        lines = "".join(f"{key}\t{offset}\n" for key, offset in offsets.items())
        file.with_suffix(".idx").write_text(lines)
    return offsets


def insightface(counts: Sequence[int], single_label: bool = True, image=face) -> dict[int, bytes]:
    """Contents as InsightFace has them: images of each identity, the head with key 0, then the ranges."""
    contents: dict[int, bytes] = {}
    ranges = []
    for identity, number in enumerate(counts):
        begin = len(contents) + 1
        for key in range(begin, begin + number):
            label = identity if single_label else (identity, 1)
            contents[key] = record(label, image(str(key)), key)
        ranges.append((begin, begin + number))
    first = len(contents) + 1
    contents[0] = record((first, first + len(ranges)))
    for key, bounds in enumerate(ranges, start=first):
        contents[key] = record(bounds, key=key)
    return contents


def headless(counts: Sequence[int], image=face) -> dict[int, bytes]:
    """Contents with images alone, keys from 0, identities in turn."""
    labels = sorted((turn, identity) for identity, number in enumerate(counts) for turn in range(number))
    return {key: record(label, image(str(key)), key) for key, (_, label) in enumerate(labels)}
