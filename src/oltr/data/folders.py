"""Folders of images: class folders, with or without train/ val/ test/ open/ above them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pandas as pd

from oltr.data.manifest import Manifest
from oltr.data.split import Flat, split_notes, split_of
from oltr.data.validate import SPLITS, UNNAMED, natural_order
from oltr.errors import UserError
from oltr.wording import Caution, count, first_few

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm")
SPLIT_FOLDERS = {name: name for name in SPLITS} | {"valid": "val", "validation": "val", "unknown": "open"}
OPEN_FOLDERS = tuple(name for name, split in SPLIT_FOLDERS.items() if split == "open")  # in either layout

Row = tuple[str, str, str]  # path, label, split


def read_folder(folder: Path, seed: int = 0, flat: Flat = "split") -> Manifest:
    """The manifest of a folder of images, in whichever of the two layouts it is."""
    inside = subfolders(folder)
    split_folders = [name for name in inside if name.lower() in SPLIT_FOLDERS]
    notes: list[str] = []
    split_made = False
    # A class may itself be called "train": a split folder is told by the class folders inside it.
    if any(subfolders(folder / name) for name in split_folders if name.lower() not in OPEN_FOLDERS):
        rows = _split_rows(folder, split_folders, notes)
        if others := [name for name in inside if name not in split_folders]:
            notes.append(f"Ignored beside the split folders: {first_few(others)}.")
    else:
        rows, split_made = _flat_rows(folder, inside, notes, seed, flat), flat == "split"
    if not rows:
        raise _nothing_found(folder)
    table = pd.DataFrame(rows, columns=["path", "label", "split"])
    return Manifest.build(table, folder, tuple(notes), split_made=split_made)


def find_images(folder: Path) -> list[str]:
    """Sorted paths, relative to `folder`, of all images below it; hidden names are skipped."""
    return sorted(_walk(str(folder), "", ()))


def _split_rows(folder: Path, split_folders: list[str], notes: list[str]) -> list[Row]:
    rows: list[Row] = []
    for name in sorted(split_folders, key=lambda name: list(SPLIT_FOLDERS).index(name.lower())):
        split = SPLIT_FOLDERS[name.lower()]
        below = _class_rows(folder / name, f"{name}/", split, notes)
        loose = loose_images(folder / name)
        if split == "open":
            below += [(f"{name}/{image}", UNNAMED, split) for image in loose]
            notes.append(_open_note(name, below))
        elif loose:
            text = f"Ignored in {name}/: {count(len(loose), 'image')} outside any class folder."
            notes.append(Caution(text))
        rows += below
    return rows


def _flat_rows(folder: Path, inside: list[str], notes: list[str], seed: int, flat: Flat) -> list[Row]:
    open_folders = [name for name in inside if name.lower() in OPEN_FOLDERS]
    found = _class_rows(folder, "", "train", notes, skip=open_folders)
    if not found:
        return []
    splits = split_of([label for _, label, _ in found], flat, seed)
    rows = [(path, label, split) for (path, label, _), split in zip(found, splits, strict=True)]
    notes += split_notes("The folder", len(rows), flat, seed)
    for name in open_folders:
        below = [(f"{name}/{image}", UNNAMED, "open") for image in loose_images(folder / name)]
        below += _class_rows(folder / name, f"{name}/", "open", notes)
        rows += below
        notes.append(_open_note(name, below))
    if loose := loose_images(folder):
        notes.append(Caution(f"Ignored: {count(len(loose), 'image')} outside any class folder."))
    return rows


def _open_note(name: str, rows: list[Row]) -> str:
    return f"The folder {name}/ is the open split: {count(len(rows), 'image')} of no known class."


def _class_rows(
    folder: Path, prefix: str, split: str, notes: list[str], skip: list[str] | None = None
) -> list[Row]:
    rows: list[Row] = []
    empty = []
    for label in natural_order(set(subfolders(folder)) - set(skip or ())):
        images = find_images(folder / label)
        rows += [(f"{prefix}{label}/{image}", label, split) for image in images]
        if not images:
            empty.append(label)
    if empty:
        names = first_few(prefix + name for name in empty)
        notes.append(Caution(f"Empty: {count(len(empty), 'class folder')}, {names}."))
    return rows


def subfolders(folder: Path) -> list[str]:
    """Sorted names of the folders in a folder; hidden ones are skipped."""
    with _scan(str(folder)) as entries:
        return sorted(_checked(entry.name, folder) for entry in entries if _shown(entry) and entry.is_dir())


def loose_images(folder: Path) -> list[str]:
    """Sorted names of the images that lie in a folder itself."""
    with _scan(str(folder)) as entries:
        return sorted(_checked(entry.name, folder) for entry in entries if _is_image(entry))


def _walk(folder: str, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[str]:
    """Images below a folder; a link back to a folder above (a loop) is not entered."""
    status = Path(folder).stat()
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    with _scan(folder) as entries:
        for entry in entries:
            if _is_image(entry):
                yield prefix + _checked(entry.name, folder)
            elif _shown(entry) and entry.is_dir():
                yield from _walk(entry.path, f"{prefix}{_checked(entry.name, folder)}/", (*above, here))


def _scan(folder: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    try:
        return os.scandir(folder)
    except OSError as error:
        raise UserError(f"The folder {folder} cannot be read: {error.strerror}.") from None


def _shown(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".")


def _is_image(entry: os.DirEntry[str]) -> bool:
    return _shown(entry) and entry.name.lower().endswith(IMAGE_SUFFIXES) and not entry.is_dir()


def _checked(name: str, folder: str | Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserError(f"A name in {folder} is not valid UTF-8: {name!a}.", try_this="rename it") from None
    return name


def _nothing_found(folder: Path) -> UserError:
    if loose := loose_images(folder):
        return UserError(
            f"{folder} holds {count(len(loose), 'image')} but no class folders.",
            "Labels come from folder names.",
            "one folder per class inside it, or a manifest with the columns path,label,split",
        )
    return UserError(
        f"No images were found in {folder}.",
        f"Images end in {' '.join(IMAGE_SUFFIXES)}.",
        "a folder with one folder of images per class",
    )
