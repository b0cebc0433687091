"""Rows on disk as they come, so that a command that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oltr.errors import UserError

Row = dict[str, Any]
Cells = list[Any]  # of a row, in the order of the columns
NESTED = ("top5", "nearest")  # columns whose cells are JSON
FREE = ("begun", "at_a_time")  # of a header: these may differ between a command and its repetition


class Journal:
    """A file of whole lines: what is being done, the columns among it, then the rows of one batch on each.

    A line that was cut off is dropped when the file is opened again, so that work goes on with a whole batch.
    Rows are kept as a table's cells, with lists and mappings as JSON: most results are tables, and a million
    rows are to be written in seconds.
    """

    def __init__(self, path: Path, header: Row, anew: bool = False):
        """Go on with the journal of the same work, or begin one; that of other work gives way if `anew`."""
        self.path, self.done = path, 0  # rows
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a+b")
        _lock(self.file, path)
        found, end = self._look()
        if found is not None and (other := _differences(found, header)):
            if not anew:
                self.file.close()
                raise UserError(
                    f"{path} was begun by another command.",
                    f"It differs in: {', '.join(other)}.",
                    "the same command again, --overwrite to drop it, or another --out",
                )
            found, end, self.done = None, 0, 0
        self.resumed = found is not None and self.done > 0
        self.header = header if found is None else found
        self.file.truncate(end if found is not None else 0)
        if found is None:
            self._write(header)

    def add(self, rows: list[Row]) -> None:
        """Rows of a batch, on the disk when this returns, as far as a killed process is concerned."""
        columns = self.header["columns"]
        self._write([[_cell(row.get(column)) for column in columns] for row in rows])
        self.done += len(rows)

    def batches(self) -> Iterator[list[Cells]]:
        """The cells of all rows so far, batch by batch."""
        with self.path.open("rb") as file:
            file.readline()
            for line in file:
                yield json.loads(line)

    def rows(self) -> Iterator[Row]:
        """All rows so far."""
        columns = self.header["columns"]
        for cells in (cells for batch in self.batches() for cells in batch):
            row = dict(zip(columns, cells, strict=True))
            yield row | {name: json.loads(row[name]) for name in NESTED if row.get(name)}

    def close(self) -> None:
        """Let others have the file."""
        self.file.close()

    def remove(self) -> None:
        """The work is done."""
        self.path.unlink()
        self.file.close()

    def _look(self) -> tuple[Row | None, int]:
        """The header and the byte after the last whole line."""
        self.file.seek(0)
        header = _whole(self.file.readline())
        if not isinstance(header, dict):
            return None, 0
        end = self.file.tell()
        for line in self.file:
            rows = _whole(line)
            if not isinstance(rows, list):
                break
            self.done, end = self.done + len(rows), end + len(line)
        return header, end

    def _write(self, value: Any) -> None:
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
        try:
            self.file.write(line.encode())
            self.file.flush()
        except OSError as problem:
            raise UserError(
                f"{self.path} could not be written: {problem.strerror}.",
                "What was judged before is kept.",
                "room on the disk, then the same command again",
            ) from problem


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _whole(line: bytes) -> Any:
    """What a line holds; None if it was cut off."""
    if not line.endswith(b"\n"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None


def _differences(found: Row, header: Row) -> list[str]:
    names = [name for name in {**found, **header} if name not in FREE]
    return [name for name in names if found.get(name) != header.get(name)]


def _lock(file: Any, path: Path) -> None:
    """Refuse a journal that another process is writing."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UserError(f"Another command is writing {path}.", try_this="another --out") from None
    except OSError:  # a file system without locks
        return
