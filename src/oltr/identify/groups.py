"""Groups of probes (sex, age, site), from a table or from the columns of a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from oltr.data.groups import named_groups
from oltr.data.sources import read_table
from oltr.data.validate import as_text
from oltr.errors import UserError
from oltr.identify.samples import Samples, split_rows
from oltr.registry import unknown_name
from oltr.wording import count

KEYS = ("path", "index", "label")  # what a row of the table is about
FORM = (
    "A table of groups is .csv or .parquet. One column says what a row is about: an image's path, a probe's "
    "index (from 0) or an identity's label; each other column is a grouping, as in `label,sex`."
)


@dataclass(frozen=True, eq=False)
class Grouping:
    """The group of each of P probes in one column; "" for none."""

    column: str
    of: np.ndarray  # P, text
    names: tuple[str, ...]  # every group there is, also those without probes

    def sizes(self, measured: np.ndarray) -> dict[str, int]:
        """Of the probes marked in `measured`, those in each group."""
        return {name: int(measured[self.of == name].sum()) for name in self.names}


def groupings(probes: Samples, table: Path | None = None, columns: Sequence[str] = ()) -> list[Grouping]:
    """The groups of the probes by columns of a table (all unless named), or of their manifest."""
    columns = list(dict.fromkeys(columns))
    if table is None:
        return [_of_manifest(probes, column) for column in columns]
    rows = _read(table)
    key = str(rows.index.name)
    place = rows.index.get_indexer(pd.Index(_keys(probes, key, table)))
    if (place < 0).all():
        raise UserError(
            f"{table} has no row for any probe of {probes.name}.",
            f"Its first {key} is {rows.index[0]!r}." if len(rows) else "It has no rows.",
        )
    for column in columns:
        if column not in rows:
            raise unknown_name("column of groups", column, list(rows.columns))
    return [
        Grouping(column, np.where(place < 0, "", rows[column].to_numpy()[place]), _names(rows[column]))
        for column in columns or rows.columns
    ]


def _read(table: Path) -> pd.DataFrame:
    """The table by what its rows are about, one row for each."""
    if not table.is_file():
        raise UserError(f"There is no table of groups {table}.")
    rows = read_table(table, "a table of groups", FORM).rename(columns=lambda name: str(name).strip())
    keys = [key for key in KEYS if key in rows]
    if len(keys) != 1:
        raise UserError(
            f"{table} has {'no column' if not keys else 'more than one column'} of {', '.join(KEYS)}.", FORM
        )
    if len(rows.columns) < 2 or rows.columns.has_duplicates:
        number = "only one column" if len(rows.columns) < 2 else "two columns of one name"
        raise UserError(f"{table} has {number}: {', '.join(rows.columns)}.", FORM)
    rows = rows.apply(as_text).set_index(keys[0])
    if repeated := int(rows.index.duplicated().sum()):
        raise UserError(f"{table} has {count(repeated, 'row')} for a {keys[0]} that it had before.")
    return rows


def _of_manifest(probes: Samples, column: str) -> Grouping:
    if probes.images is None:
        raise UserError(
            f"{probes.name} has no column {column!r}: it holds features and labels.",
            try_this="--groups TABLE, with a column of that name",
        )
    manifest, splits = probes.images
    names = np.array(named_groups(manifest, column), dtype=object)[split_rows(manifest, splits)]
    return Grouping(column, names, _names(names))


def _names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values) - {""}))


def _keys(probes: Samples, key: str, table: Path) -> list[str]:
    """What a probe is called in such a table."""
    if key == "index":
        return [str(number) for number in range(len(probes))]
    if key == "label":
        return [str(label) for label in probes.labels]
    if probes.paths is None:
        raise UserError(
            f"{table} goes by path, and {probes.name} has no paths.", try_this="a column `index` or `label`"
        )
    return [str(path) for path in probes.paths]
