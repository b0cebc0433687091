"""Images that people sent: files below the run folder, and a row for each in the run's history file."""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from oltr.files import atomic_write, sync
from oltr.runs.history import History

AT_ONCE = 8
LONGEST = 200  # letters of a name that are kept
ABANDONED = 600  # seconds after which a file without a row is nobody's who is still at work


@dataclass(frozen=True, eq=False)
class Upload:
    """An image that was sent, known by its content."""

    id: str  # digest of its content
    time: str  # UTC
    name: str  # as its sender called it; no path of ours
    kept: str  # its file, below the run folder
    bytes: int
    model: str  # the weights that the outputs are of
    outputs: np.ndarray  # float32, see `flat_outputs`


class Uploads:
    """RUN/uploads and the table of the same name; a row is there only when its file is."""

    def __init__(self, run_folder: Path, history: History):
        self.run_folder, self.history = run_folder, history
        self.folder = run_folder / "uploads"
        self.thumbnails = self.folder / "thumbnails"
        self.left_out: set[str] = set()  # rows without outputs of the present weights

    def all(self, without: Iterable[str] = ()) -> list[Upload]:
        """The rows whose id is not among those given, oldest first."""
        known = self.left_out | set(without)
        return [
            _upload(*row)
            for row in self._rows("id, time, name, kept, bytes, model, outputs")
            if row[0] not in known
        ]

    def ids(self) -> set[str]:
        """Of all rows but those left out."""
        if not self.history.path.is_file():
            return set()
        with self.history.database() as database:
            return {row[0] for row in database.execute("SELECT id FROM uploads")} - self.left_out

    def keep(self, uploads: Sequence[Upload], contents: Sequence[bytes]) -> None:
        """Put images on disk, then their rows; both are there when this returns."""
        self.folder.mkdir(exist_ok=True)
        with ThreadPoolExecutor(AT_ONCE) as threads:  # a disk writes several as quickly as one
            list(threads.map(self._write, uploads, contents))
        sync(self.folder)
        self.replace(uploads)

    def replace(self, uploads: Sequence[Upload]) -> None:
        """Write rows, those of the same ids again."""
        with self.history.database() as database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT OR REPLACE INTO uploads VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(u.id, u.time, u.name, u.kept, u.bytes, u.model, u.outputs.tobytes()) for u in uploads],
            )
            database.execute("COMMIT")
        self.left_out -= {upload.id for upload in uploads}

    def delete(self, uploads: Sequence[Upload]) -> None:
        """Forget images: their rows, then their files."""
        with self.history.database() as database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("DELETE FROM uploads WHERE id = ?", [(upload.id,) for upload in uploads])
            database.execute("COMMIT")
        for upload in uploads:
            (self.run_folder / upload.kept).unlink(missing_ok=True)
            self.thumbnail(upload.id).unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove files without a row, which a killed process left; another that serves may be adding some."""
        ids, before = self.ids() | self.left_out, time.time() - ABANDONED
        for folder in (self.folder, self.thumbnails):
            for file in folder.iterdir() if folder.is_dir() else ():
                known = file.suffix == ".json" or file.stem in ids
                if not known and file.is_file() and file.stat().st_mtime < before:
                    file.unlink(missing_ok=True)

    def thumbnail(self, number: str) -> Path:
        """Where the small copy of an image lies."""
        return self.thumbnails / f"{number}.jpg"

    def _write(self, upload: Upload, content: bytes) -> None:
        with atomic_write(self.run_folder / upload.kept) as part, part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _rows(self, columns: str) -> Iterator[tuple[Any, ...]]:
        if not self.history.path.is_file():
            return
        with self.history.database() as database:
            yield from database.execute(f"SELECT {columns} FROM uploads ORDER BY time, rowid")


def _upload(*row: Any) -> Upload:
    return Upload(*row[:-1], outputs=np.frombuffer(row[-1], np.float32))  # type: ignore[misc]


def now() -> str:
    """The time in UTC, as the history has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def shown_name(name: str | None) -> str:
    """What a sender called an image, fit to be shown: without invisible letters and empty or dotted parts."""
    plain = unicodedata.normalize("NFC", (name or "").encode(errors="replace").decode(errors="replace"))
    plain = "".join(letter for letter in plain if letter.isprintable()).replace("\\", "/")
    parts = [part.strip() for part in plain.split("/")]
    return "/".join(part for part in parts if part.strip("."))[-LONGEST:] or "image"
