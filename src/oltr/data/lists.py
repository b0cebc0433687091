"""List files such as `*_train.txt`: one `path label` per line, −1 for open."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from oltr.data.manifest import Manifest
from oltr.data.validate import SPLITS, UNNAMED
from oltr.errors import UserError


def find_lists(folder: Path) -> dict[str, Path]:
    """The folder's list file of each split that has one."""
    lists: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        match = re.fullmatch(r"(?:.*_)?(train|val|test|open)\.txt", path.name, flags=re.IGNORECASE)
        if not match or path.name.startswith(".") or not path.is_file():
            continue
        split = match[1].lower()
        if split in lists:
            raise UserError(
                f"{folder} holds two {split} lists, {lists[split].name} and {path.name}.",
                try_this="a folder of its own for each dataset",
            )
        lists[split] = path
    return lists


def read_lists(lists: dict[str, Path], root: str | Path) -> Manifest:
    """One manifest from the lists of a dataset; images are not opened."""
    columns: dict[str, list[str]] = {"path": [], "label": [], "split": []}
    for split in SPLITS:
        if split in lists:
            for path, label in list_rows(lists[split], split):
                columns["path"].append(path)
                columns["label"].append(UNNAMED if label < 0 else str(label))
                columns["split"].append("open" if label < 0 else split)
    if not columns["path"]:
        raise UserError(f"The lists in {next(iter(lists.values())).parent} are empty.")
    return Manifest.build(pd.DataFrame(columns), root)


def list_rows(file: Path, split: str) -> list[tuple[str, int]]:
    """The (path, class number) of each line of a list; −1 is an unknown class."""
    rows = []
    for number, line in list_lines(file):
        # The label is what follows the last space: paths may have spaces of their own.
        parts = line.rsplit(maxsplit=1)
        if len(parts) < 2:
            raise _bad_line(file, number, line, "has no label")
        try:
            label = int(parts[1])
        except ValueError:
            problem = f"has the label {parts[1]!r}, which is not an integer"
            raise _bad_line(file, number, line, problem) from None
        if label < -1 or (label == -1 and split in ("train", "val")):
            raise _bad_line(file, number, line, f"has the label {label} in the {split} list")
        rows.append((parts[0], label))
    return rows


def list_lines(file: Path, kind: str = "list") -> list[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers from 1."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"The {kind} {file} cannot be read: {reason}.") from None
    return [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]


def _bad_line(file: Path, number: int, line: str, problem: str) -> UserError:
    return UserError(
        f"{file}, line {number} {problem}: {line[:120]!r}.",
        "Each line is a path, a space and a class number; −1, in test and open lists, is an unknown class.",
    )
