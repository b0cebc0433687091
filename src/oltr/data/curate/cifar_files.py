"""CIFAR-10 and CIFAR-100 as people have them: image folders, official pickles, or the archive of those."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oltr.data.scan import find_images
from oltr.data.validate import natural_order
from oltr.errors import UserError
from oltr.wording import count, first_few

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Cifar:
    """One of the two sets: its official files, what they call things, and how many images it has."""

    title: str
    archive: str
    folder: str  # in the archive
    parts: Mapping[str, tuple[str, ...]]  # split -> its files, in official order
    meta: str  # the file with the class names
    labels: str  # key of the class numbers
    names: str  # key of the class names
    classes: int
    per_class: Mapping[str, int]  # split -> images of each class
    remarks: tuple[str, ...] = ()  # what to know of the original


CIFAR100 = Cifar(
    title="CIFAR-100",
    archive="cifar-100-python.tar.gz",
    folder="cifar-100-python",
    parts={"train": ("train",), "test": ("test",)},
    meta="meta",
    labels="fine_labels",
    names="fine_label_names",
    classes=100,
    per_class={"train": 500, "test": 100},
    remarks=("Ten images of the original CIFAR-100 are in both train and test; they were left there.",),
)
CIFAR10 = Cifar(
    title="CIFAR-10",
    archive="cifar-10-python.tar.gz",
    folder="cifar-10-batches-py",
    parts={"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
    meta="batches.meta",
    labels="labels",
    names="label_names",
    classes=10,
    per_class={"train": 5000, "test": 1000},
)


@dataclass(frozen=True)
class CifarFiles:
    """Rows path, label, split in official order, and the pictures where they are not files yet."""

    table: pd.DataFrame
    pictures: dict[str, np.ndarray]
    order: str  # what the order of the images rests on
    root: Path | None = None  # where the paths start; None: the folder that the pictures are written to


def whole_cifar(
    cifar: Cifar, root: Path | None, benchmark: str, splits: tuple[str, ...] = SPLITS
) -> CifarFiles:
    """All images of these splits, for a benchmark, from whatever form of the set lies at `root`.

    Of the other splits no file is opened or looked for.
    """
    if root is None:
        raise UserError(
            f"{cifar.title} is needed to make {benchmark}.",
            try_this=f"--root with the archive {cifar.archive}, its unpacked folder, or image folders",
        )
    files = _read(cifar, root.expanduser(), splits)
    _check_whole(cifar, files.table, splits)
    return files


def find_official(cifar: Cifar, root: Path, splits: tuple[str, ...] = SPLITS) -> Path | None:
    """The archive at `root`, or the unpacked folder with the files of these splits, if there is one."""
    if root.is_file():
        return root
    for folder in (root / cifar.folder, root):
        if all((folder / file).is_file() for file in _file_names(cifar, splits)):
            return folder
    return root / cifar.archive if (root / cifar.archive).is_file() else None


def read_official(cifar: Cifar, where: Path, splits: tuple[str, ...] = SPLITS) -> CifarFiles:
    """These splits of the archive or unpacked folder `where`, as pictures in images/SPLIT/CLASS/INDEX.png."""
    contents = _unpacked(cifar, where, splits)
    names = _load(contents[cifar.meta], f"{where}/{cifar.meta}", cifar).get(cifar.names)
    if not isinstance(names, list) or not all(_names_a_folder(name) for name in names):
        raise UserError(f"{where}/{cifar.meta} is not a {cifar.title} file.")
    rows: list[tuple[str, str, str]] = []
    pictures: dict[str, np.ndarray] = {}
    for split in splits:
        index = 0
        for part in cifar.parts[split]:
            images, labels = _images(contents[part], f"{where}/{part}", cifar, len(names))
            for label, image in zip(labels, images, strict=True):
                path = f"images/{split}/{names[label]}/{index:05d}.png"
                rows.append((path, names[label], split))
                pictures[path] = image
                index += 1
    return CifarFiles(pd.DataFrame(rows, columns=["path", "label", "split"]), pictures, "official index")


def _read(cifar: Cifar, root: Path, splits: tuple[str, ...]) -> CifarFiles:
    if where := find_official(cifar, root, splits):
        return read_official(cifar, where, splits)
    if all((root / split).is_dir() for split in splits):
        return _from_folders(root, splits)
    wanted = _file_names(cifar, splits)
    for folder in (root / cifar.folder, root):
        missing = [file for file in wanted if not (folder / file).is_file()]
        if len(missing) < len(wanted):
            raise UserError(
                f"{cifar.title} in {folder} is not whole: {first_few(missing)} missing.",
                try_this=f"unpack {cifar.archive} again",
            )
    raise UserError(
        f"{cifar.title} was not found in {root}." if root.exists() else f"There is no file or folder {root}.",
        f"Known forms: {cifar.archive}; the folder {cifar.folder} in it; "
        "folders train/CLASS/INDEX.png and test/...",
    )


def _from_folders(root: Path, splits: tuple[str, ...]) -> CifarFiles:
    rows = []
    numbered = True
    for split in splits:
        images = [f"{split}/{path}" for path in find_images(root / split)]
        images = [path for path in images if path.count("/") == 2]
        stems = [Path(path).stem for path in images]
        numbered = numbered and all(stem.isdecimal() for stem in stems)
        keys = [(int(stem), stem) if numbered else (0, stem) for stem in stems]
        rows += [(path, path.split("/")[1], split) for _, path in sorted(zip(keys, images, strict=True))]
    order = "official index (the file name)" if numbered else "file name (these carry no official index)"
    return CifarFiles(pd.DataFrame(rows, columns=["path", "label", "split"]), {}, order, root)


def _check_whole(cifar: Cifar, table: pd.DataFrame, splits: tuple[str, ...]) -> None:
    sizes = {split: table.loc[table["split"] == split, "label"].value_counts() for split in splits}
    names = [set(sizes[split].index) for split in splits]
    if any(len(each) != cifar.classes or each != names[0] for each in names):
        found = ", ".join(f"{len(sizes[split])} classes in {split}" for split in splits)
        raise UserError(
            f"This is not {cifar.title}: {found}.",
            f"It has the same {cifar.classes} in train and test.",
        )
    for split in splits:
        each = cifar.per_class[split]
        if lacking := [name for name in natural_order(names[0]) if sizes[split][name] != each]:
            named = first_few(f"{name} ({sizes[split][name]})" for name in lacking)
            raise UserError(
                f"This is not the whole {cifar.title}: {count(len(lacking), 'class')} without "
                f"{each} {'training' if split == 'train' else split} images, {named}."
            )


def _file_names(cifar: Cifar, splits: tuple[str, ...] = SPLITS) -> list[str]:
    return [*(part for split in splits for part in cifar.parts[split]), cifar.meta]


def _unpacked(cifar: Cifar, where: Path, splits: tuple[str, ...]) -> dict[str, bytes]:
    """The contents of the official files, by name."""
    wanted = _file_names(cifar, splits)
    if where.is_dir():
        return {file: (where / file).read_bytes() for file in wanted}
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(where) as tar:
            for member in tar:  # in the archive's order: going back would decompress it again
                folder, _, file = member.name.removeprefix("./").partition("/")
                content = tar.extractfile(member) if folder == cifar.folder and file in wanted else None
                if content is not None:
                    contents[file] = content.read()
            while tar.fileobj is not None and tar.fileobj.read(2**20):
                pass  # gzip's checksum comes last; without it, damaged pixels would pass
        if missing := [file for file in wanted if file not in contents]:
            raise KeyError(f"{cifar.folder}/{missing[0]} not found")
    except Exception as error:  # damaged archives fail in many ways, each compression in its own
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise UserError(f"{where} is not the archive {cifar.archive}, or it is cut off: {reason}.") from None
    return contents


def _images(content: bytes, where: str, cifar: Cifar, classes: int) -> tuple[np.ndarray, list[int]]:
    """The pictures N × 32 × 32 × 3 of one official file and their class numbers."""
    loaded = _load(content, where, cifar)
    data, labels = loaded.get("data"), loaded.get(cifar.labels)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or not isinstance(labels, list):
        raise UserError(f"{where} is not a {cifar.title} file.")
    if data.shape != (len(labels), 3072) or not all(
        isinstance(label, int) and 0 <= label < classes for label in labels
    ):
        raise UserError(f"{where} is damaged: {data.shape} pixels for {len(labels)} labels.")
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


def _load(content: bytes, where: str, cifar: Cifar) -> dict[str, Any]:
    """The dictionary in a pickle, its byte strings as text."""
    try:
        loaded = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
        if isinstance(loaded, dict):
            return {
                _text(key): [_text(item) for item in value] if isinstance(value, list) else value
                for key, value in loaded.items()
            }
    except Exception as error:  # a broken pickle may raise anything
        raise UserError(f"{where} cannot be read: {error}.") from None
    raise UserError(f"{where} is not a {cifar.title} file.")


def _names_a_folder(name: Any) -> bool:
    return isinstance(name, str) and "/" not in name and name not in ("", ".", "..")


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
