"""Every form in which a user may hand over images, read into a `Manifest`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from oltr.data.folders import Flat, read_folder
from oltr.data.lists import find_lists, read_lists
from oltr.data.manifest import Manifest
from oltr.data.validate import as_text
from oltr.errors import UserError
from oltr.wording import first_few

FORMS = (
    "a manifest (.csv or .parquet), a folder of class folders, a folder with train/ val/ test/ open/, "
    "a folder with lists *_train.txt, *_test.txt, or a pack (.pack)"
)


def read_source(
    source: str | Path, root: str | Path | None = None, seed: int = 0, flat: Flat = "split"
) -> Manifest:
    """The manifest behind a source.

    `root` overrides where a manifest's or a list's paths start. `seed` fixes the split of a folder
    without splits; with `flat="train"` or `"test"` all its known images are in that one.
    """
    source = Path(source).expanduser()
    if not source.exists():
        raise UserError(
            f"There is no file or folder {source}.",
            f"Looked in {source.absolute().parent}.",
            f"a path that exists: {FORMS}",
        )
    if root is not None and not Path(root).expanduser().is_dir():
        raise UserError(f"The image root {root} is not a folder.", try_this="the folder the paths start from")
    if source.is_file():
        if source.suffix.lower() == ".pack":
            from oltr.data.pack import read_pack_manifest

            return read_pack_manifest(source)
        return read_manifest(source, root)
    for name in ("manifest.csv", "manifest.parquet"):
        if (source / name).is_file():
            return read_manifest(source / name, root)
    if lists := find_lists(source):
        return read_lists(lists, source if root is None else root)
    if root is not None:
        raise UserError(
            f"An image root was given, but {source} holds no manifest and no lists.",
            "A folder of images is its own root.",
            "leave --root out",
        )
    return read_folder(source, seed, flat)


def read_manifest(path: Path, root: str | Path | None = None) -> Manifest:
    """A manifest file; paths start at `root`, else at its `root` column, else at its own folder."""
    table = _read_table(path)
    recorded = ""
    if "root" in table:
        values = as_text(table.pop("root")).unique()
        if len(values) > 1:
            raise UserError(
                f"The column `root` of {path} has {len(values)} values: {first_few(values)}.",
                "A manifest has one image root.",
                "absolute paths instead of several roots",
            )
        recorded = values[0] if len(values) else ""
    try:
        return Manifest.build(table, root if root is not None else path.parent / Path(recorded).expanduser())
    except UserError as error:
        raise UserError(f"{path}: {error.what}", error.why, error.try_this) from None


def _read_table(path: Path) -> pd.DataFrame:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise UserError(f"{path} is not a source of images.", f"A source is {FORMS}.")
    try:
        if suffix == ".parquet":
            return pd.read_parquet(path)
        # Everything as text, so that classes called 007, NA or null keep their names.
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except pd.errors.EmptyDataError:
        reason = "the file is empty"
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 text (byte {error.start})"
    except (OSError, ValueError) as error:  # pandas' and pyarrow's parsing errors are ValueErrors
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ").rstrip(".")
    raise UserError(f"{path} cannot be read as a manifest: {reason}.", f"A source is {FORMS}.")
