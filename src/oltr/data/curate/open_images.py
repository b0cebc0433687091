"""The open split of a benchmark: images that show no known class."""

from __future__ import annotations

import tarfile
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from oltr.data.curate.cifar_files import CIFAR10, CIFAR100, Cifar, find_official, read_official
from oltr.data.folders import SPLIT_FOLDERS
from oltr.data.scan import Scan, find_images
from oltr.data.validate import UNNAMED, natural_order
from oltr.errors import UserError
from oltr.wording import count, first_few

NO_CLASS = "images"  # TinyImageNet keeps its pictures in CLASS/images/ and test/images/


@dataclass(frozen=True)
class OpenImages:
    """Open rows, how they were chosen, and the pictures where they are not files yet."""

    table: pd.DataFrame
    sentence: str
    pictures: dict[str, np.ndarray] = field(default_factory=dict)


def open_table(folder: Path) -> pd.DataFrame:
    """All images below a folder as open rows, named by the class folder they lie in, if any."""
    return _rows(folder, (NO_CLASS, *SPLIT_FOLDERS))


def read_open_folder(folder: Path, known: Collection[str]) -> OpenImages:
    """The images of a folder, its test images alone where it has `train` and `test`; no known class."""
    _require_folder(folder)
    inside = {name.lower(): name for name in Scan(folder).subfolders(folder)}
    if "train" in inside and "test" in inside:
        test = folder / inside["test"]
        table = _rows(test, (NO_CLASS,))  # below test/, a folder `train` holds pictures of trains
        sentence = f"Open: the {len(table):,} images of {test} alone, for there is a train folder beside it."
    else:
        table = open_table(folder)
        sentence = f"Open: all {len(table):,} images of {folder}."
    _refuse_known(table, known, folder)
    return OpenImages(table, sentence)


def read_open(root: Path, known: Collection[str], cifar: Cifar) -> OpenImages:
    """Open images beside a CIFAR set: the official test images of the other one, or a folder of images."""
    found = _official(root, cifar)
    if found is None:
        return read_open_folder(root, known)
    other, where = found
    files = read_official(other, where, ("test",))
    paths = ["images/open/" + path.removeprefix("images/test/") for path in files.table["path"]]
    table = files.table.assign(path=paths, split="open")
    _refuse_known(table, known, root)
    pictures = dict(zip(paths, files.pictures.values(), strict=True))
    return OpenImages(table, f"Open: the {len(table):,} test images of {other.title}, {where}.", pictures)


def _official(root: Path, cifar: Cifar) -> tuple[Cifar, Path] | None:
    """Which CIFAR set lies at `root` in its official form, and where."""
    if root.is_file():
        folder = _top_folder(root)
        for candidate in (CIFAR10, CIFAR100):
            if candidate.folder == folder:
                return candidate, root
        raise UserError(
            f"{root} is no archive of CIFAR-10 or CIFAR-100.",
            try_this=f"--open-root with a folder of images, {CIFAR10.archive} or {CIFAR100.archive}",
        )
    # A folder may hold both; the other one is meant.
    for candidate in sorted((CIFAR10, CIFAR100), key=lambda candidate: candidate.title == cifar.title):
        if where := find_official(candidate, root, ("test",)):
            return candidate, where
    return None


def _top_folder(archive: Path) -> str:
    """The folder that an archive begins with; "" where it is no archive."""
    try:
        with tarfile.open(archive) as tar:
            first = tar.next()
    except Exception:  # damaged archives fail in many ways
        return ""
    return first.name.removeprefix("./").split("/")[0] if first else ""


def _rows(folder: Path, not_classes: tuple[str, ...]) -> pd.DataFrame:
    _require_folder(folder)
    images = find_images(folder)
    if not images:
        raise UserError(f"No images were found in {folder}.", try_this="--open-root with a folder of images")
    labels = []
    for image in images:
        classes = [name for name in Path(image).parent.parts if name.lower() not in not_classes]
        labels.append(classes[-1] if classes else UNNAMED)
    paths = [str(folder.absolute() / image) for image in images]
    return pd.DataFrame({"path": paths, "label": labels, "split": "open"})


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(
            f"The folder of open images {folder} is not there.", try_this="--open-root with a folder"
        )


def _refuse_known(table: pd.DataFrame, known: Collection[str], root: Path) -> None:
    if clash := natural_order(set(table["label"]) & set(known)):
        raise UserError(
            f"{root} has {count(len(clash), 'class')} that training knows too: {first_few(clash)}.",
            "Open images must show what training never saw.",
            "--open-root with a folder that lacks these classes",
        )
