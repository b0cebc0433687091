"""Sources of images in every supported form, read into a `Manifest`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from oltr.data.folders import read_folder
from oltr.data.lists import find_lists, read_lists
from oltr.data.manifest import Manifest
from oltr.data.split import Flat, split_notes, split_of
from oltr.data.validate import as_text, split_column
from oltr.errors import UserError
from oltr.plugins import failure, import_reference, is_reference
from oltr.wording import count, first_few

FORMS = (
    "a manifest (.csv or .parquet), a folder of class folders, a folder with train/ val/ test/ open/, "
    "a folder with lists *_train.txt, *_test.txt, or a pack (.pack)"
)


def read_source(source: Any, root: str | Path | None = None, seed: int = 0, flat: Flat = "split") -> Manifest:
    """Read a source into a manifest.

    A source is a path; a DataFrame with the columns path, label and split; a map-style Dataset of (image,
    label) pairs, or a mapping of split to Dataset; a manifest; or `package.module:attribute`, which is
    such an object or a function that makes it. `root` is where relative paths start. `seed` fixes the split
    of data without one; with `flat="train"` or `"test"` all its known images are in that one.
    """
    if root is not None and not Path(root).expanduser().is_dir():
        raise UserError(f"The image root {root} is not a folder.", try_this="the folder the paths start from")
    if isinstance(source, str) and not source.strip():
        raise UserError("The source is empty text.", f"A source is {FORMS}.")
    if names_object(source):
        source = _named_object(source, root)
    if isinstance(source, (str, Path)):
        return _read_path(Path(source).expanduser(), root, seed, flat)
    if isinstance(source, Manifest):
        return source
    if isinstance(source, pd.DataFrame):
        return _read_frame(source, root, seed, flat)

    from oltr.data.datasets import is_dataset, read_datasets  # with torch, which the others do not need

    if isinstance(source, Mapping) or is_dataset(source):
        return read_datasets(source, Path(root or ".").expanduser().absolute(), seed, flat)
    raise UserError(
        f"An object of type {type(source).__name__} is no source of images.",
        f"A source is {FORMS}; or a DataFrame, or a Dataset.",
        "a Dataset with a length and (image, label) items by number" if hasattr(source, "__iter__") else "",
    )


def names_object(source: Any) -> bool:
    """Whether a source is given as `package.module:attribute`."""
    return isinstance(source, str) and is_reference(source) and not Path(source).exists()


def _named_object(name: str, root: str | Path | None) -> Any:
    """The object that a name stands for, or what it returns if it is a function or class."""
    from oltr.data.datasets import is_dataset

    found = import_reference(name, "source", root or ".")
    if callable(found) and not is_dataset(found):
        try:
            found = found()
        except UserError:
            raise
        except (Exception, SystemExit) as problem:
            raise UserError(f"The source {name} cannot be made.", failure(problem)) from problem
    if isinstance(found, (str, Path)):
        raise UserError(f"The source {name} is the path {found}.", try_this="that path itself")
    return found


def _read_path(source: Path, root: str | Path | None, seed: int, flat: Flat) -> Manifest:
    """A file or folder in any of its forms."""
    if not source.exists():
        raise UserError(
            f"There is no file or folder {source}.",
            f"Looked in {source.absolute().parent}.",
            f"a path that exists: {FORMS}",
        )
    if source.is_file():
        if source.suffix.lower() == ".pack":
            from oltr.data.pack import read_pack_manifest

            return read_pack_manifest(source)
        return read_manifest(source, root, seed, flat)
    if (source / "run.yaml").is_file():
        raise UserError(
            f"{source} is a run, not a folder of images.",
            try_this=f"the images that it was trained on, or oltr train --from {source} --out DIR",
        )
    for name in ("manifest.csv", "manifest.parquet"):
        if (source / name).is_file():
            return read_manifest(source / name, root, seed, flat)
    if lists := find_lists(source):
        return read_lists(lists, source if root is None else root)
    if root is not None:
        raise UserError(
            f"An image root was given, but {source} holds no manifest and no lists.",
            "A folder of images is its own root.",
            "leave --root out",
        )
    return read_folder(source, seed, flat)


def read_manifest(
    path: Path, root: str | Path | None = None, seed: int = 0, flat: Flat = "split"
) -> Manifest:
    """A manifest file; paths start at `root`, else at its `root` column, else at its own folder."""
    table, recorded = without_root(read_table(path), str(path))
    try:
        start = root if root is not None else path.parent / Path(recorded).expanduser()
        return _build(table, start, "The manifest", seed, flat)
    except UserError as error:
        raise UserError(f"{path}: {error.what}", error.why, error.try_this) from None


def _read_frame(frame: pd.DataFrame, root: str | Path | None, seed: int, flat: Flat) -> Manifest:
    """A DataFrame; paths start at `root`, its `root` column or the current folder."""
    named = frame.rename(columns=lambda name: str(name).strip())
    table, recorded = without_root(named, "the DataFrame")
    return _build(table, Path(recorded) if root is None else root, "The DataFrame", seed, flat)


def _build(table: pd.DataFrame, root: str | Path, what: str, seed: int, flat: Flat) -> Manifest:
    """The manifest of a table; without the column `split` it is split as a flat folder is.

    Then images without a label, or with the label −1, are the open split.
    """
    table = table.rename(columns=lambda name: str(name).strip())
    if "split" in table or "label" not in table or split_column(table):
        return Manifest.build(table, root)
    labels = as_text(table["label"])
    known = ~labels.isin(["", "-1"])
    if not known.any():
        raise UserError(f"{what} has no splits, and every image is without a label.")
    drawn = iter(split_of(labels[known].tolist(), flat, seed))
    splits = [next(drawn) if named else "open" for named in known]
    notes = split_notes(what, int(known.sum()), flat, seed)
    if unnamed := int((~known).sum()):
        notes.append(f"Images without a label are the open split: {count(unnamed, 'image')}.")
    table = table.assign(label=labels.where(known, ""), split=splits)
    return Manifest.build(table, root, tuple(notes), split_made=flat == "split")


def without_root(table: pd.DataFrame, where: str) -> tuple[pd.DataFrame, str]:
    """The table without its column `root`, and the one value in it."""
    if "root" not in table:
        return table, ""
    values = as_text(table.pop("root")).unique()
    if len(values) > 1:
        raise UserError(
            f"The column `root` of {where} has {len(values)} values: {first_few(values)}.",
            "A manifest has one image root.",
            "absolute paths instead of several roots",
        )
    return table, values[0] if len(values) else ""


def read_table(path: Path, what: str = "", form: str = f"A source is {FORMS}.") -> pd.DataFrame:
    """A table from a file; `what` it is if not a manifest, and in which `form`, is for messages."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise UserError(f"{path} is not {what or 'a source of images'}.", form)
    try:
        if suffix == ".parquet":
            return pd.read_parquet(path)
        # Everything as text, so that classes called 007, NA or null keep their names.
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
        if isinstance(table.index, pd.RangeIndex):
            return table
        reason = "its rows have more cells than its first line"  # pandas would shift the columns
    except pd.errors.EmptyDataError:
        reason = "the file is empty"
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 text (byte {error.start})"
    except (OSError, ValueError) as error:  # pandas' and pyarrow's parsing errors are ValueErrors
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ").rstrip(".")
    raise UserError(f"{path} cannot be read as {what or 'a manifest'}: {reason}.", form)
