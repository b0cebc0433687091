"""What a manifest's table must be like, and the messages when it is not."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pandas as pd

from oltr.errors import UserError
from oltr.wording import Caution, count, first_few

COLUMNS = ("path", "label", "split")
SPLITS = ("train", "val", "test", "open")
UNNAMED = "unknown"  # the label of an open image that nobody has named


def clean_table(table: pd.DataFrame, root: str) -> pd.DataFrame:
    """The table with text columns, empty open labels filled in, and no duplicates or empty cells.

    Relative paths start at `root`.
    """
    table = table.rename(columns=lambda name: str(name).strip()).reset_index(drop=True)
    _require_columns(table)
    if table.empty:
        raise UserError("The manifest has no rows.", try_this="a table with one row per image")
    for column in COLUMNS:
        table[column] = as_text(table[column])
    table = table[[*COLUMNS, *(name for name in table.columns if name not in COLUMNS)]]
    _require_splits(table)
    is_open = table["split"] == "open"
    table.loc[is_open & (table["label"] == ""), "label"] = UNNAMED
    for column in ("path", "label"):
        if (empty := table[column] == "").any():
            rows = first_few(table.index[empty] + 1)
            raise UserError(
                f"The manifest has {count(int(empty.sum()), 'row')} without a {column}: row {rows}.",
                try_this="fill them in, or give images of no known class the split `open`",
            )
    _refuse_duplicates(table, root)
    return table


def as_text(column: pd.Series) -> pd.Series:
    """Cells as stripped text; missing cells as "", and 3.0 (an integer that met a gap) as "3"."""
    if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype(object).where(column.notna(), "").astype(str).str.strip()


@contextmanager
def learned_since(names: Iterable[str]) -> Iterator[None]:
    """Classes that val and test may show without training images, in sources read meanwhile: a run that is
    measured on them has learned them after its training."""
    before = _learned_since.set(frozenset(names))
    try:
        yield
    finally:
        _learned_since.reset(before)


# Not an argument: a source goes through a reader of its form, and only this check asks.
_learned_since: ContextVar[frozenset[str]] = ContextVar("learned_since", default=frozenset())


def known_classes(table: pd.DataFrame) -> tuple[str, ...]:
    """The training labels in natural order; those of val and test where there is no training split."""
    of_split = {split: set(table.loc[table["split"] == split, "label"].unique()) for split in SPLITS}
    tested, since = of_split["val"] | of_split["test"], _learned_since.get()
    known = of_split["train"] or tested
    for split in ("val", "test"):
        if unseen := natural_order(of_split[split] - known - since):
            raise UserError(
                f"The {split} split has {count(len(unseen), 'class')} that training never saw: "
                f"{first_few(unseen)}.",
                "Only what was trained can be recognised.",
                "add training images of them, or move those images to the split `open`",
            )
    if clash := natural_order((of_split["open"] & known) - since):
        raise UserError(
            f"The open split has {count(len(clash), 'class')} that training knows too: {first_few(clash)}.",
            "Images of the open split must show what training never saw.",
            "remove or rename those labels in the open split",
        )
    return tuple(natural_order(known | (tested & since)))


def class_notes(table: pd.DataFrame, classes: tuple[str, ...]) -> tuple[str, ...]:
    """What is legal about the classes but worth saying."""
    sizes = table.loc[table["split"] == "train", "label"].value_counts()
    if sizes.empty:
        return (Caution("There is no train split: the set can be evaluated on, not trained on."),)
    notes = []
    if single := natural_order(set(sizes.index[sizes == 1])):
        verb = "has" if len(single) == 1 else "have"
        text = f"{count(len(single), 'class')} {verb} a single training image: {first_few(single)}."
        notes.append(Caution(text))
    if len(classes) == 1:
        notes.append(Caution(f"There is only one class, {classes[0]!r}: recognition needs at least two."))
    return tuple(notes)


def natural_order(names: set[str]) -> list[str]:
    """Numbers by value, other names as people sort them (img2 before img10), whatever the case."""
    if all(re.fullmatch(r"-?\d+(\.\d+)?", name) for name in names):
        return sorted(names, key=lambda name: (float(name), name))

    def key(name: str) -> tuple[list[str | int], str]:
        parts = re.split(r"(\d+)", name.casefold())
        return [int(part) if position % 2 else part for position, part in enumerate(parts)], name

    return sorted(names, key=key)


def _require_columns(table: pd.DataFrame) -> None:
    found = list(table.columns)
    missing = [name for name in COLUMNS if name not in found]
    if not missing:
        return
    guesses = []
    for name in missing:
        near = difflib.get_close_matches(name, [column.lower() for column in found], n=1, cutoff=0.5)
        meant = next((column for column in found if column.lower() in near), "")
        if name == "split":
            meant = split_column(table) or meant
        if meant:
            guesses.append(f"{meant!r} → {name!r}")
    hint = f"did you mean to rename {', '.join(guesses)}?" if guesses else "a first line `path,label,split`"
    if len(found) == 1 and any(mark in found[0] for mark in ";\t"):
        hint = "separate the columns with commas"
    raise UserError(
        f"The manifest lacks the {'column' if len(missing) == 1 else 'columns'} {', '.join(missing)}.",
        f"It has: {first_few(found, 12) or 'none'}.",
        hint,
    )


def split_column(table: pd.DataFrame) -> str:
    """The column that a table without `split` means by it: of nearly that name, or such values."""
    others = [str(name) for name in table.columns if name not in COLUMNS]
    near = difflib.get_close_matches("split", [name.lower() for name in others], n=1, cutoff=0.8)
    if near:
        return next(name for name in others if name.lower() == near[0])
    for name in others:
        values = set(as_text(table[name]).str.lower())
        if "train" in values and values <= {*SPLITS, "valid", "validation"}:
            return name
    return ""


def _require_splits(table: pd.DataFrame) -> None:
    strange = [name for name in table["split"].unique() if name not in SPLITS]
    if strange:
        near = difflib.get_close_matches(strange[0].lower(), SPLITS, n=1, cutoff=0.5)
        raise UserError(
            f"The manifest names splits that do not exist: {first_few(map(repr, strange))}.",
            f"A split is one of {', '.join(SPLITS)}.",
            f"did you mean {near[0]!r}?" if near else "",
        )


def _refuse_duplicates(table: pd.DataFrame, root: str) -> None:
    # An open image's absolute path may name a file that another row names from the root.
    absolute = list(map(os.path.isabs, table["path"]))
    start = f"{root}/" if any(absolute) else ""
    pairs = zip(table["path"], absolute, strict=True)
    where = pd.Series([os.path.normpath(path if is_whole else start + path) for path, is_whole in pairs])
    repeated = where[where.duplicated(keep=False)]
    if repeated.empty:
        return
    splits_of = table.loc[repeated.index, "split"].groupby(repeated).nunique()
    across = splits_of[splits_of > 1]
    if len(across):
        raise UserError(
            f"{count(len(across), 'path')} in more than one split: {first_few(across.index)}.",
            "A test image that was trained on makes every number too good.",
            "keep each image in one split",
        )
    raise UserError(
        f"{count(len(splits_of), 'path')} listed more than once: {first_few(splits_of.index)}.",
        try_this="remove the repeated rows",
    )
