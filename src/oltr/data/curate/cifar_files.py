"""CIFAR-100 as people have it: image folders, the official pickles, or the archive around them."""

from __future__ import annotations

import io
import pickle
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oltr.data.folders import find_images
from oltr.errors import UserError

ARCHIVE, FOLDER = "cifar-100-python.tar.gz", "cifar-100-python"
PARTS = ("train", "test", "meta")


@dataclass(frozen=True)
class CifarFiles:
    """Rows path, label, split in official order, and the pictures where they are not files yet."""

    table: pd.DataFrame
    pictures: dict[str, np.ndarray]
    order: str  # what the order of the images rests on


def read_cifar100(root: Path) -> CifarFiles:
    """CIFAR-100 from whatever of its forms lies at `root`."""
    if root.is_file():
        return _from_archive(root)
    for folder in (root / FOLDER, root):
        if all((folder / part).is_file() for part in PARTS):
            return _from_pickles({part: (folder / part).read_bytes() for part in PARTS}, str(folder))
    if (root / ARCHIVE).is_file():
        return _from_archive(root / ARCHIVE)
    if (root / "train").is_dir() and (root / "test").is_dir():
        return _from_folders(root)
    raise UserError(
        f"CIFAR-100 was not found in {root}." if root.exists() else f"There is no file or folder {root}.",
        f"Known forms: {ARCHIVE}; the folder {FOLDER} in it; folders train/CLASS/INDEX.png and test/...",
    )


def _from_folders(root: Path) -> CifarFiles:
    rows = []
    numbered = True
    for split in ("train", "test"):
        images = [f"{split}/{path}" for path in find_images(root / split)]
        images = [path for path in images if path.count("/") == 2]
        stems = [Path(path).stem for path in images]
        numbered = numbered and all(stem.isdecimal() for stem in stems)
        keys = [(int(stem), stem) if numbered else (0, stem) for stem in stems]
        rows += [(path, path.split("/")[1], split) for _, path in sorted(zip(keys, images, strict=True))]
    order = "official index (the file name)" if numbered else "file name (these carry no official index)"
    return CifarFiles(pd.DataFrame(rows, columns=["path", "label", "split"]), {}, order)


def _from_archive(archive: Path) -> CifarFiles:
    try:
        with tarfile.open(archive) as tar:
            members = {part: tar.extractfile(f"{FOLDER}/{part}") for part in PARTS}
            contents = {part: b"" if member is None else member.read() for part, member in members.items()}
    except (tarfile.TarError, KeyError, EOFError, OSError) as error:
        raise UserError(f"{archive} is not the archive {ARCHIVE}, or it is cut off: {error}.") from None
    return _from_pickles(contents, str(archive))


def _from_pickles(contents: dict[str, bytes], where: str) -> CifarFiles:
    names = _load(contents["meta"], f"{where}/meta").get("fine_label_names", [])
    rows: list[tuple[str, str, str]] = []
    pictures: dict[str, np.ndarray] = {}
    for split in ("train", "test"):
        content = _load(contents[split], f"{where}/{split}")
        data, labels = content.get("data"), content.get("fine_labels")
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or not isinstance(labels, list):
            raise UserError(f"{where}/{split} is not a CIFAR-100 file.")
        if data.shape != (len(labels), 3072) or not all(0 <= label < len(names) for label in labels):
            raise UserError(f"{where}/{split} is damaged: {data.shape} pixels for {len(labels)} labels.")
        images = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        for index, (label, image) in enumerate(zip(labels, images, strict=True)):
            path = f"images/{split}/{names[label]}/{index:05d}.png"
            rows.append((path, names[label], split))
            pictures[path] = image
    return CifarFiles(pd.DataFrame(rows, columns=["path", "label", "split"]), pictures, "official index")


def _load(content: bytes, where: str) -> dict[str, Any]:
    """The dictionary in a pickle, its byte strings as text."""
    try:
        loaded = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a broken pickle may raise anything
        raise UserError(f"{where} cannot be read: {error}.") from None
    if not isinstance(loaded, dict):
        raise UserError(f"{where} is not a CIFAR-100 file.")
    return {
        _text(key): [_text(item) for item in value] if isinstance(value, list) else value
        for key, value in loaded.items()
    }


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


class _ArraysOnly(pickle.Unpickler):
    """A pickle may run code when read; this one makes numpy arrays and plain containers and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np.empty(0).__reduce__()[0]
        if (module, name) in {("numpy", "ndarray"), ("numpy", "dtype")}:
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):  # how Python 3 writes bytes for Python 2
            return lambda text, encoding: text.encode(encoding)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which has no place in image data")
