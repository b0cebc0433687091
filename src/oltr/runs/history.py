"""What was done to a run after training, action by action, in a SQLite file in its folder."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oltr.errors import Locked, MachineError, NoRoom, UserError
from oltr.files import check_writable

Kind = Literal["add", "remove", "rename", "reject", "undo"]
SCHEMA = 2  # 1 had no uploads
_FAULTS = {sqlite3.SQLITE_BUSY: Locked, sqlite3.SQLITE_LOCKED: Locked, sqlite3.SQLITE_FULL: NoRoom}
_TABLES = """
CREATE TABLE actions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  time TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  details TEXT NOT NULL,      -- JSON
  weight BLOB,                -- float32 D, of an added class
  bias REAL,
  undone_by INTEGER REFERENCES actions (id)
);
CREATE TABLE images (         -- that a class was added from, or that were rejected
  action INTEGER NOT NULL REFERENCES actions (id),
  path TEXT NOT NULL,         -- as it was given; empty for an image in no file
  kept TEXT NOT NULL,         -- its copy, below the run folder
  feature BLOB NOT NULL       -- float32 D, the direct feature; empty where it was rejected
);
CREATE TABLE uploads (        -- images that were sent to the run's service, and wait for a name
  id TEXT PRIMARY KEY,        -- digest of its content
  time TEXT NOT NULL,
  name TEXT NOT NULL,
  kept TEXT NOT NULL,         -- its file, below the run folder
  bytes INTEGER NOT NULL,
  model TEXT NOT NULL,        -- the weights that the outputs are of
  outputs BLOB NOT NULL       -- float32, the trained network's
);
"""


class ChangedMeanwhile(UserError):
    """An action that was decided on before somebody else's was known."""


@dataclass(frozen=True, eq=False)
class CollectedImage:
    """An image that a class was added from."""

    path: str
    kept: str
    feature: np.ndarray  # D float32


@dataclass(frozen=True, eq=False)
class Action:
    """One change of a run's classes, or images put aside."""

    id: int
    time: str  # UTC
    kind: Kind
    name: str
    details: dict[str, Any]
    weight: np.ndarray | None = None
    bias: float | None = None
    images: tuple[CollectedImage, ...] = ()
    undone_by: int | None = None


class History:
    """RUN/history.sqlite. An action is on disk before the call that records it returns; a killed process
    leaves it whole or not at all."""

    def __init__(self, path: Path):
        self.path = path

    def actions(self, features: bool = True) -> list[Action]:
        """All of them, oldest first; without `features` their images have none, and reading is quick."""
        if not self.path.is_file():
            return []
        with self.database() as database:
            columns = "action, path, kept" + (", feature" if features else "")
            images: dict[int, list[CollectedImage]] = {}
            for action, path, kept, *feature in database.execute(
                f"SELECT {columns} FROM images ORDER BY rowid"
            ):
                found = np.frombuffer(feature[0], np.float32) if feature else np.empty(0, np.float32)
                images.setdefault(action, []).append(CollectedImage(path, kept, found))
            rows = database.execute(
                "SELECT id, time, kind, name, details, weight, bias, undone_by FROM actions ORDER BY id"
            ).fetchall()
        return [
            Action(
                id=number,
                time=time,
                kind=kind,
                name=name,
                details=json.loads(details),
                weight=None if weight is None else np.frombuffer(weight, np.float32),
                bias=bias,
                images=tuple(images.get(number, ())),
                undone_by=undone_by,
            )
            for number, time, kind, name, details, weight, bias, undone_by in rows
        ]

    def last(self) -> int:
        """The number of the last action; 0 before the first."""
        if not self.path.is_file():
            return 0
        with self.database() as database:
            return _last(database)

    def active(self) -> list[Action]:
        """Those that hold: not undone, and no undoing themselves."""
        return holding(self.actions())

    def record(
        self,
        kind: Kind,
        name: str,
        details: dict[str, Any],
        *,
        after: int,
        weight: np.ndarray | None = None,
        bias: float | None = None,
        images: Callable[[], Sequence[CollectedImage]] = tuple,
    ) -> int:
        """Add an action that was decided on when `after` was the last one; its number.

        `images` is called when nothing but the disk can refuse the action any more.
        """
        with self._change(after) as database:
            found = images()
            number = _insert(database, kind, name, details, weight, bias)
            database.executemany(
                "INSERT INTO images VALUES (?, ?, ?, ?)",
                [(number, each.path, each.kept, each.feature.tobytes()) for each in found],
            )
        return number

    def check(self, after: int) -> None:
        """Refuse now what `record` would refuse: a history that cannot be written, or was by others."""
        check_writable(self.path)
        if self.path.is_file():
            with self._change(after):
                pass

    def undo(self, number: int, details: dict[str, Any], *, after: int) -> int:
        """Mark an action as undone, by an action of its own."""
        with self._change(after) as database:
            name = database.execute("SELECT name FROM actions WHERE id = ?", (number,)).fetchone()[0]
            by = _insert(database, "undo", name, {"undoes": number} | details, None, None)
            database.execute("UPDATE actions SET undone_by = ? WHERE id = ?", (by, number))
        return by

    def copy(self, to: Path) -> None:
        """Write it to another file as it is between two actions, whoever is writing."""
        if self.path.is_file():
            with self.database() as database, closing(sqlite3.connect(to)) as other:
                database.backup(other)

    @contextmanager
    def _change(self, after: int) -> Iterator[sqlite3.Connection]:
        """A transaction that fails if others have changed the run since `after`."""
        with self.database() as database:
            database.execute("BEGIN IMMEDIATE")
            last = _last(database)
            if last != after:
                database.rollback()
                raise ChangedMeanwhile(
                    f"{self.path.parent} was changed meanwhile, by somebody else.",
                    f"Its last action is {last}, not {after}.",
                    "oltr history, then the command again",
                )
            try:
                yield database
            except BaseException:
                database.rollback()
                raise
            database.commit()

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """The file, opened such that what is committed stays."""
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
                database.execute("PRAGMA synchronous = EXTRA")  # a power cut takes back nothing acknowledged
                _check_schema(database)
                yield database
        except sqlite3.DatabaseError as problem:
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # without the details in its upper bits
            raise _FAULTS.get(code, MachineError)(
                f"The history {self.path} cannot be read or written.",
                str(problem),
                "a run folder that may be written, or a copy of it from before",
            ) from None


def as_of(actions: Sequence[Action], number: int) -> list[Action]:
    """The history as it was when `number` was the last action."""
    return [
        each if each.undone_by is None or each.undone_by <= number else replace(each, undone_by=None)
        for each in actions
        if each.id <= number
    ]


def holding(actions: Sequence[Action]) -> list[Action]:
    """Those that are not undone, and no undoing themselves."""
    return [each for each in actions if each.undone_by is None and each.kind != "undo"]


def _check_schema(database: sqlite3.Connection) -> None:
    """Make the tables of a new file, in one transaction."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version == SCHEMA:
        return
    if version > SCHEMA:
        raise UserError("The run's history is of a newer version of oltr.", try_this="that version")
    database.executescript(
        f"BEGIN IMMEDIATE; {_TABLES.replace('CREATE TABLE', 'CREATE TABLE IF NOT EXISTS')}"
        f" PRAGMA user_version = {SCHEMA}; COMMIT;"
    )


def _last(database: sqlite3.Connection) -> int:
    number: int = database.execute("SELECT coalesce(max(id), 0) FROM actions").fetchone()[0]
    return number


def _insert(
    database: sqlite3.Connection,
    kind: Kind,
    name: str,
    details: dict[str, Any],
    weight: np.ndarray | None,
    bias: float | None,
) -> int:
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    row = database.execute(
        "INSERT INTO actions (time, kind, name, details, weight, bias) VALUES (?, ?, ?, ?, ?, ?)",
        (
            time,
            kind,
            name,
            json.dumps(details, ensure_ascii=False),
            None if weight is None else weight.astype(np.float32).tobytes(),
            bias,
        ),
    )
    assert row.lastrowid is not None
    return row.lastrowid
