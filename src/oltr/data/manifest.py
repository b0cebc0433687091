"""`Manifest`, the dataset type: a table of path, label and split, and the folder where paths start."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from oltr.config import Frame
from oltr.data.images import read_image
from oltr.data.split import MADE
from oltr.data.validate import COLUMNS, SPLITS, class_notes, clean_table, known_classes
from oltr.errors import UserError
from oltr.files import atomic_write, is_utf8
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.data.broken import Broken
    from oltr.data.items import Items


@dataclass(frozen=True, eq=False)
class Manifest:
    """Images with their labels and splits; make one with `Manifest.build`, which checks the table."""

    table: pd.DataFrame  # string columns path, label, split, then any others the user had
    root: Path  # where relative paths start
    classes: tuple[str, ...]  # the known classes, in natural order
    notes: tuple[str, ...] = ()  # messages for the user
    pack: Path | None = None  # the pack that holds the pixels, row by row
    items: Items | None = None  # the datasets that give the images, by path
    skipped: tuple[Broken, ...] | None = None  # images left out as unreadable; None: none was tried
    split_made: bool = False  # whether the data had no splits, and train, val and test were drawn
    split_kept: bool = False  # whether reading the source again would give other splits: a run keeps these

    @classmethod
    def build(
        cls,
        table: pd.DataFrame,
        root: str | Path,
        notes: tuple[str, ...] = (),
        *,
        items: Items | None = None,
        split_made: bool = False,
    ) -> Manifest:
        """A checked manifest; whatever is wrong with the table is one `UserError`."""
        root = Path(root).expanduser().absolute()
        table = clean_table(table, str(root))
        classes = known_classes(table)
        notes = (*notes, *class_notes(table, classes))
        return cls(table, root, classes, notes, items=items, split_made=split_made)

    def with_splits(self, splits: np.ndarray, notes: Sequence[str] = ()) -> Manifest:
        """The same images in other splits (n,), which a run then keeps."""
        table = self.table.assign(split=splits)
        said = (*self.notes_but_splits(), *notes, *class_notes(table, self.classes))
        return replace(self, table=table, notes=said, split_kept=True)

    def notes_but_splits(self) -> list[str]:
        """What is worth saying, whatever the splits."""
        of_splits = class_notes(self.table, self.classes)
        return [note for note in self.notes if note not in of_splits and not note.startswith(MADE)]

    def rows(self, split: str) -> pd.DataFrame:
        """The table's rows of one split, in order."""
        if split not in SPLITS:
            raise ValueError(f"split must be one of {SPLITS}, not {split!r}")
        return self.table[self.table["split"] == split].reset_index(drop=True)

    def positions(self, split: str) -> np.ndarray:
        """Row numbers of a split's images in the table (n,), and so in the pack."""
        return np.flatnonzero((self.table["split"] == split).to_numpy())

    def labels(self, split: str) -> np.ndarray:
        """Class numbers of a split's images (n,), −1 for images of no known class."""
        labels = self.rows(split)["label"]
        if split == "open":
            return np.full(len(labels), -1, dtype=np.int64)
        return pd.Index(self.classes).get_indexer(pd.Index(labels)).astype(np.int64)

    def paths(self, split: str) -> list[Path]:
        """Where a split's image files are."""
        return [self.root / path for path in self.rows(split)["path"]]

    def read(self, path: str, size: int | Frame) -> np.ndarray:
        """The image of a row that lies in no pack, uint8 size×size×3."""
        return read_image(self.root / path, size) if self.items is None else self.items.read(path, size)

    def open_class_names(self) -> list[str]:
        """The class of each open image; refused where all have one name, as unnamed images do."""
        names = self.rows("open")["label"].tolist()
        if len(set(names)) < 2:
            found = count(len(set(names)), "class name")
            raise UserError(
                f"The open images have {found}, so their number cannot be varied.",
                try_this="a manifest that gives each open image the name of its class",
            )
        return names

    def train_counts(self) -> np.ndarray:
        """Training images per class (K,)."""
        return np.bincount(self.labels("train"), minlength=len(self.classes)).astype(np.int64)

    def sizes(self) -> dict[str, int]:
        """Images per split, empty splits included."""
        sizes = self.table["split"].value_counts()
        return {split: int(sizes.get(split, 0)) for split in SPLITS}

    def fingerprint(self) -> str:
        """A hash of classes, paths, labels and splits; the same wherever the images are."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        for column in COLUMNS:
            digest.update(b"\1" + "\0".join(self.table[column]).encode())
        return digest.hexdigest()

    def write(self, path: str | Path, record_root: bool | None = None) -> None:
        """Write CSV or parquet, atomically; same content, same bytes.

        The image root is recorded unless it is the folder written to, which is the default.
        """
        path = Path(path)
        if self.items is not None:
            raise UserError(
                f"{path} was not written.",
                "The images come from a Dataset, and a manifest names files.",
                "oltr data pack SOURCE --out FILE.pack, which keeps the images too",
            )
        if record_root is None:
            record_root = self.root != path.absolute().parent
        if record_root and not is_utf8(self.root):
            raise UserError(f"The image root {str(self.root)!a} is not valid UTF-8.", try_this="rename it")
        table = self.table.assign(root=str(self.root)) if record_root else self.table
        if path.suffix not in (".csv", ".parquet"):
            raise UserError(
                f"{path} is no name for a manifest.", try_this="a name ending in .csv or .parquet"
            )
        with atomic_write(path) as part:
            if path.suffix == ".csv":
                # Python before 3.13 leaves a carriage return in a name unquoted, which then ends the line.
                odd = any(
                    cells.astype(str).str.contains("\r", regex=False).any() for _, cells in table.items()
                )
                quoting: Literal[0, 1] = csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL
                table.to_csv(part, index=False, lineterminator="\n", encoding="utf-8", quoting=quoting)
            else:
                table.to_parquet(part, index=False)
