"""Images as they are named on a command line: files, folders, globs, tables, lists, a pack."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from oltr.console import console
from oltr.data.pack import open_pack
from oltr.data.scan import IMAGE_SUFFIXES, find_images
from oltr.data.sources import read_table, without_root
from oltr.data.validate import as_text
from oltr.errors import UserError
from oltr.runs.given_images import checked_name
from oltr.wording import count

STDIN = "-"
TABLES = (".csv", ".parquet")
FORMS = (
    "image files, folders, quoted globs, a table with a column `path` (.csv, .parquet), a list of paths "
    "(.txt), a pack (.pack), or - for a list on standard input"
)


@dataclass(frozen=True, eq=False)
class NamedImages:
    """N images in the order they were named, each once."""

    paths: list[str]  # such that they can be opened from here; those of a pack are its manifest's
    table: pd.DataFrame  # N rows: the other columns of the tables that named them, as text
    pack: Path | None = None
    rows: np.ndarray | None = None  # N rows of the pack

    def __len__(self) -> int:
        return len(self.paths)

    def column(self, name: str, option: str) -> list[str]:
        """A column of the table that named the images."""
        if name in self.table:
            return self.table[name].tolist()
        there = ", ".join(self.table.columns) or "none: the images are not named by a table"
        raise UserError(f"{option} {name}: there is no such column.", f"Columns: {there}")

    def taken(self, order: np.ndarray) -> NamedImages:
        """The same images in another order, or some of them."""
        rows = None if self.rows is None else self.rows[order]
        table = self.table.iloc[order].reset_index(drop=True)
        return NamedImages([self.paths[i] for i in order], table, self.pack, rows)


def named_images(items: Iterable[str | Path]) -> NamedImages:
    """All images that the items stand for; image files that are not there are among them."""
    given = [str(item) for item in items]
    if not given or any(not item.strip() for item in given):
        raise UserError("No images were named.", f"Images are {FORMS}.")
    if any(Path(item).suffix.lower() == ".pack" for item in given):
        return _of_pack(given)
    parts = [_named_by(item) for item in given]
    table = pd.concat(parts, ignore_index=True).astype(object)
    table = table.where(table.notna(), "")
    first = ~table["path"].duplicated()
    if twice := int((~first).sum()):
        console.say(f"{count(twice, 'image')} named more than once; each is taken once")
    table = table[first].reset_index(drop=True)
    paths = table.pop("path").tolist()
    for path in paths:
        checked_name(Path(path))
    return NamedImages(paths, table)


def _named_by(item: str) -> pd.DataFrame:
    """The images of one item: a column `path`, and what else a table has."""
    path = Path(item).expanduser()
    if item == STDIN:
        return _as_table(_lines(sys.stdin.read()), "standard input names no images")
    if path.is_dir():
        return _as_table((str(path / name) for name in find_images(path)), f"There are no images in {path}")
    if path.is_file() and path.suffix.lower() in TABLES:
        return _of_table(path)
    if path.is_file() and path.suffix.lower() == ".txt":
        names = (_opened_from(path.parent, name) for name in _lines(_text(path)))
        return _as_table(names, f"{path} names no images")
    if not path.exists() and glob.has_magic(item):
        return _as_table(_of_glob(str(path)), f"No image matches {item}")
    if not path.exists() and path.suffix.lower() not in IMAGE_SUFFIXES:
        raise UserError(f"There is no file or folder {item}.", f"Images are {FORMS}.")
    return _as_table([str(path)], "")


def _of_glob(pattern: str) -> Iterator[str]:
    """Images that match, those below folders that match included; hidden names are skipped."""
    for name in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - of any root
        path = Path(name)
        if path.is_dir():
            if "**" not in pattern:  # which names what is in the folder, too
                yield from (str(path / below) for below in find_images(path))
        elif path.suffix.lower() in IMAGE_SUFFIXES:
            yield str(path)


def _of_table(file: Path) -> pd.DataFrame:
    table, root = without_root(read_table(file).rename(columns=lambda name: str(name).strip()), str(file))
    if "path" not in table:
        columns = ", ".join(map(str, table.columns))
        raise UserError(f"{file} has no column `path`.", f"Its columns: {columns}.")
    table = table.apply(as_text)
    if (empty := table["path"].str.strip() == "").any():
        raise UserError(f"{file}: {count(int(empty.sum()), 'row')} without a path.")
    if table.empty:
        raise UserError(f"{file} names no images.")
    folder = file.parent / Path(root).expanduser()
    return table.assign(path=[_opened_from(folder, name) for name in table["path"]])


def _of_pack(given: list[str]) -> NamedImages:
    if len(given) > 1:
        raise UserError("A pack was named beside other images.", try_this="the pack alone")
    manifest = open_pack(Path(given[0]).expanduser()).manifest
    table = manifest.table.drop(columns="path").reset_index(drop=True)
    return NamedImages(manifest.table["path"].tolist(), table, manifest.pack, np.arange(len(table)))


def _opened_from(folder: Path, name: str) -> str:
    """A name in a list: from the list's folder, or else from the current one, as in predictions.csv."""
    path = folder / Path(name).expanduser()
    return str(path) if path.exists() or not Path(name).exists() else name


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UserError(f"{file} is not UTF-8 text (byte {problem.start}).") from None


def _lines(text: str) -> list[str]:
    """The names in a list, one on each line, or as `find -print0` writes them."""
    names = text.split("\0") if "\0" in text else text.splitlines()
    return [name.strip() for name in names if name.strip()]


def _as_table(paths: Iterable[str], none: str) -> pd.DataFrame:
    listed = list(paths)
    if not listed:
        raise UserError(f"{none}.", f"Images are {FORMS}.")
    return pd.DataFrame({"path": listed}, dtype=object)
