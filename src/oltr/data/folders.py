"""Folders of images: class folders, with or without train/ val/ test/ open/ above them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from oltr.data.manifest import Manifest
from oltr.data.scan import IMAGE_SUFFIXES, Scan
from oltr.data.split import Flat, split_notes, split_of
from oltr.data.validate import SPLITS, UNNAMED, natural_order
from oltr.errors import UserError
from oltr.wording import Caution, count, first_few

SPLIT_FOLDERS = {name: name for name in SPLITS} | {"valid": "val", "validation": "val", "unknown": "open"}
OPEN_FOLDERS = tuple(name for name, split in SPLIT_FOLDERS.items() if split == "open")  # in either layout

Row = tuple[str, str, str]  # path, label, split


def read_folder(folder: Path, seed: int = 0, flat: Flat = "split") -> Manifest:
    """The manifest of a folder of images, in whichever of the two layouts it is."""
    scan = Scan(folder)
    inside = scan.subfolders(folder)
    split_folders = [name for name in inside if name.lower() in SPLIT_FOLDERS]
    notes: list[str] = []
    split_made = False
    # A class may itself be called "train": a split folder is recognised by the class folders inside it.
    if any(scan.subfolders(folder / name) for name in split_folders if name.lower() not in OPEN_FOLDERS):
        rows = _split_rows(scan, split_folders, notes)
        if others := [name for name in inside if name not in split_folders]:
            notes.append(f"Ignored beside the split folders: {first_few(others)}.")
    else:
        rows, split_made = _flat_rows(scan, inside, notes, seed, flat), flat == "split"
    loose = scan.loose_images(folder)
    if not rows:
        raise _nothing_found(folder, len(loose))
    if loose:
        notes.append(Caution(f"Ignored: {count(len(loose), 'image')} outside any class folder."))
    notes += scan.notes()
    table = pd.DataFrame(rows, columns=["path", "label", "split"])
    return Manifest.build(table, folder, tuple(notes), split_made=split_made)


def _split_rows(scan: Scan, split_folders: list[str], notes: list[str]) -> list[Row]:
    rows: list[Row] = []
    for name in sorted(split_folders, key=lambda name: list(SPLIT_FOLDERS).index(name.lower())):
        split = SPLIT_FOLDERS[name.lower()]
        below = _class_rows(scan, scan.root / name, f"{name}/", split, notes)
        loose = scan.loose_images(scan.root / name)
        if split == "open":
            below += [(f"{name}/{image}", UNNAMED, split) for image in loose]
            notes.append(_open_note(name, below))
        elif loose:
            text = f"Ignored in {name}/: {count(len(loose), 'image')} outside any class folder."
            notes.append(Caution(text))
        rows += below
    return rows


def _flat_rows(scan: Scan, inside: list[str], notes: list[str], seed: int, flat: Flat) -> list[Row]:
    open_folders = [name for name in inside if name.lower() in OPEN_FOLDERS]
    found = _class_rows(scan, scan.root, "", "train", notes, skip=open_folders)
    if not found:
        return []
    splits = split_of([label for _, label, _ in found], flat, seed)
    rows = [(path, label, split) for (path, label, _), split in zip(found, splits, strict=True)]
    notes += split_notes("The folder", len(rows), flat, seed)
    for name in open_folders:
        below = [(f"{name}/{image}", UNNAMED, "open") for image in scan.loose_images(scan.root / name)]
        below += _class_rows(scan, scan.root / name, f"{name}/", "open", notes)
        rows += below
        notes.append(_open_note(name, below))
    return rows


def _open_note(name: str, rows: list[Row]) -> str:
    return f"The folder {name}/ is the open split: {count(len(rows), 'image')} of no known class."


def _class_rows(
    scan: Scan, folder: Path, prefix: str, split: str, notes: list[str], skip: list[str] | None = None
) -> list[Row]:
    rows: list[Row] = []
    empty = []
    for label in natural_order(set(scan.subfolders(folder)) - set(skip or ())):
        images = scan.images(folder / label)
        rows += [(f"{prefix}{label}/{image}", label, split) for image in images]
        if not images:
            empty.append(label)
    if empty:
        names = first_few(prefix + name for name in empty)
        notes.append(Caution(f"Empty: {count(len(empty), 'class folder')}, {names}."))
    return rows


def _nothing_found(folder: Path, loose: int) -> UserError:
    if loose:
        return UserError(
            f"{folder} holds {count(loose, 'image')} but no class folders.",
            "Labels come from folder names.",
            "one folder per class inside it, or a manifest with the columns path,label,split",
        )
    return UserError(
        f"No images were found in {folder}.",
        f"Images end in {' '.join(IMAGE_SUFFIXES)}.",
        "a folder with one folder of images per class",
    )
