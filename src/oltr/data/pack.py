"""Packed images: a whole data set decoded once to fixed-size uint8, in one memory-mapped file.

The file is in safetensors format with two tensors: `images` (N×S×S×3, uint8) and `manifest` (the bytes of
the manifest as parquet), so any safetensors reader opens it. Its metadata tell how the pictures became
squares; those of older packs do not, which were all stretched.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oltr.config import Frame
from oltr.console import Progress
from oltr.data.decode import decode_all
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.files import atomic_write

FORMAT = "oltr-pack-1"


@dataclass(frozen=True)
class Pack:
    """An open pack: the images memory-mapped (N×S×S×3) and their manifest, row by row."""

    path: Path
    images: np.ndarray
    manifest: Manifest
    frame: Frame  # how its pictures became squares

    @property
    def size(self) -> int:
        return self.frame.size


def check_size(size: int) -> None:
    """Refuse a side in pixels that no picture should be stored at."""
    if not 1 <= size <= 4096:
        raise UserError(f"--size {size} is out of range.", try_this="1 to 4096 pixels; 256 is usual")


def check_pack_name(out: Path) -> None:
    """Refuse a file name that would not be taken for a pack later."""
    if out.suffix != ".pack":
        raise UserError(f"{out} is no name for a pack.", try_this=f"--out {out.with_suffix('.pack')}")


def write_pack(
    manifest: Manifest, frame: int | Frame, out: str | Path, progress: Progress | None = None
) -> Path:
    """Decode every image of `manifest` to the frame and write the pack; nothing, if one is unreadable."""
    pixels = decode_all(manifest, list(manifest.table["path"]), frame, progress)
    return write_pack_from(manifest, pixels, frame, out)


def write_pack_from(
    manifest: Manifest, pixels: Iterable[np.ndarray], frame: int | Frame, out: str | Path
) -> Path:
    """Write a pack from size×size×3 arrays given in the manifest's order, atomically."""
    out, frame = Path(out), Frame(frame) if isinstance(frame, int) else frame
    size, made = frame.size, {"resize": frame.resize, "interpolation": frame.interpolation}
    check_pack_name(out)
    table = io.BytesIO()
    manifest.table.to_parquet(table, index=False)
    count, image_bytes = len(manifest.table), len(manifest.table) * size * size * 3
    header = json.dumps(
        {
            "__metadata__": {"format": FORMAT, **made},
            "images": {"dtype": "U8", "shape": [count, size, size, 3], "data_offsets": [0, image_bytes]},
            "manifest": {
                "dtype": "U8",
                "shape": [table.tell()],
                "data_offsets": [image_bytes, image_bytes + table.tell()],
            },
        }
    ).encode()
    header += b" " * (-len(header) % 8)
    with atomic_write(out) as part, part.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for image in pixels:
            file.write(np.ascontiguousarray(image, dtype=np.uint8).tobytes())
        if file.tell() != 8 + len(header) + image_bytes:
            raise ValueError("the number or size of the images does not fit the manifest")
        file.write(table.getvalue())
    return out


def open_pack(path: str | Path) -> Pack:
    """Map a pack into memory; its manifest knows the pack."""
    path = Path(path).absolute()
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header: dict[str, Any] = json.loads(file.read(length))
            known: dict[str, str] = header["__metadata__"]
            if known["format"] != FORMAT:
                raise ValueError("another format")
            start, (begin, end) = 8 + length, header["manifest"]["data_offsets"]
            file.seek(start + begin)
            table = pd.read_parquet(io.BytesIO(file.read(end - begin)))
        # Copy-on-write: torch takes no read-only memory, and the file still cannot be changed.
        images: np.ndarray = np.memmap(path, np.uint8, "c", start, tuple(header["images"]["shape"]))
        made = {name: known[name] for name in ("resize", "interpolation") if name in known}
        frame = Frame(int(images.shape[1]), **made)
    except FileNotFoundError:
        raise UserError(f"There is no pack {path}.") from None
    except Exception as problem:  # a cut or foreign file fails in many ways that all mean this
        raise UserError(
            f"{path} is not a whole pack.", f"({problem})", "oltr data pack SOURCE --size S --out FILE"
        ) from problem
    return Pack(path, images, replace(Manifest.build(table, path.parent), pack=path), frame)


def read_pack_manifest(path: str | Path) -> Manifest:
    """The manifest inside a pack."""
    return open_pack(path).manifest
