"""Which images belong together (a site, an animal, a patient, a burst), so that no split tears them apart."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from oltr.console import console
from oltr.data.manifest import Manifest
from oltr.data.near_duplicates import MOST_PAIRS, find_near_duplicates
from oltr.data.opened import open_all
from oltr.data.validate import COLUMNS, as_text, natural_order
from oltr.errors import UserError
from oltr.wording import count, first_few

FOLDER, ALIKE = "folder", "near-duplicates"
KNOWN = ("train", "val", "test")


@dataclass(frozen=True)
class Groups:
    """The group of each row of a manifest, and what it was taken from."""

    by: str
    names: np.ndarray  # (n,) strings; an image that belongs to no other has a name of its own

    def __len__(self) -> int:
        return len(np.unique(self.names))


def find_groups(manifest: Manifest, by: str) -> Groups:
    """The groups by a column of the manifest, by the folders inside class folders, or by looks."""
    if by == ALIKE and by not in manifest.table:
        return Groups(ALIKE, _clusters(manifest))
    return Groups(by, _named(named_groups(manifest, by, ALIKE), manifest))


def named_groups(manifest: Manifest, by: str, *others: str) -> list[str]:
    """By a column of the manifest or by folders the name of each row's group, "" for none.

    `others` are ways of grouping that the caller has besides, for the message where there is no such column.
    """
    columns = [str(name) for name in manifest.table if name not in COLUMNS]
    if by in columns:
        return as_text(manifest.table[by]).tolist()
    if by == FOLDER:
        return _folders(manifest)
    there = (
        f"The source has the columns {first_few(columns, 12)}."
        if columns
        else "The source has no further columns."
    )
    near = difflib.get_close_matches(by, columns, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"{', '.join(['a column', *others])} or {FOLDER}"
    raise UserError(f"There is no column {by!r} to group by.", there, hint)


def straddling(manifest: Manifest, groups: Groups) -> dict[str, list[str]]:
    """Groups that lie in more than one of train, val and test, and in which."""
    known = manifest.table["split"].isin(KNOWN).to_numpy()
    splits = manifest.table.loc[known, "split"].groupby(groups.names[known]).agg(set)
    torn = {str(name): [s for s in KNOWN if s in found] for name, found in splits.items() if len(found) > 1}
    return {name: torn[name] for name in natural_order(set(torn))}


def _named(names: list[str], manifest: Manifest) -> np.ndarray:
    """Group names; an image without one is named by its path, which no group is called."""
    own = [f"\0{path}" for path in manifest.table["path"]]
    return np.array([name or alone for name, alone in zip(names, own, strict=True)], dtype=object)


def _folders(manifest: Manifest) -> list[str]:
    """The folder inside the class folder (site, of fox/site/1.jpg); in other layouts, the image's folder."""
    names = []
    for path, label in zip(manifest.table["path"], manifest.table["label"], strict=True):
        above = PurePosixPath(path).parts[:-1]
        below = above[above.index(label) + 1 :] if label in above else above
        names.append(below[0] if label in above and below else "/".join(below))
    known = manifest.table["split"].isin(KNOWN)
    if not any(name for name, is_known in zip(names, known, strict=True) if is_known):
        raise UserError(
            "The class folders hold no folders to group by.",
            try_this="folders such as fox/site-1/001.jpg, or a manifest with a column for the group",
        )
    return names


def _clusters(manifest: Manifest) -> np.ndarray:
    """Clusters of near-duplicates; those of one plain colour go by their bytes."""
    rows = open_all(manifest)
    with console.progress("comparing images", "steps") as progress:
        found = find_near_duplicates([row.look for row in rows], progress)
    if not found.complete:
        raise UserError(
            f"More than {count(MOST_PAIRS, 'pair')} of images look alike.",
            "Their clusters would be most of the set.",
            "a column of the manifest that tells what belongs together",
        )
    first: dict[int | bytes, str] = {}  # of each cluster, which it is called by
    keys = [
        row.content if row.look is not None and row.look.plain else cluster
        for row, cluster in zip(rows, found.clusters().tolist(), strict=True)
    ]
    return np.array(
        [first.setdefault(key, row.path) for key, row in zip(keys, rows, strict=True)], dtype=object
    )
