"""Files that appear whole or not at all, in places that can be written to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oltr.errors import UserError, machine_error


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary name to write to; it becomes `path` when the block ends well and vanishes when it does not.

    A full disk or a forbidden folder is a `UserError`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with unwritable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            temporary.replace(path)
    finally:
        if path.parent.is_dir():
            temporary.unlink(missing_ok=True)


@contextmanager
def unwritable(path: Path) -> Iterator[None]:
    """Tell of a full disk or a forbidden folder as a `UserError`."""
    try:
        yield
    except OSError as problem:
        kept = " What was there before is kept." if path.is_file() else ""
        raise machine_error(problem)(
            f"{path} could not be written: {problem.strerror or problem}.{kept}",
            try_this="a disk with room, or another folder",
        ) from problem


def sync(path: Path) -> None:
    """Have a file's content, or a folder's list of names, on disk: a power cut takes nothing of it back."""
    if os.name == "nt" and path.is_dir():
        return  # Windows has no such call for folders
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(path: str | Path) -> None:
    """Refuse a place where no file or folder could be made; nothing is left there."""
    path = Path(path).expanduser()
    folder = (path if path.is_dir() else path.parent).absolute()
    try:
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as problem:
        reason = problem.strerror or str(problem)
    raise UserError(f"{path} cannot be written: {reason}.", try_this="a folder that you may write to")


def is_utf8(name: str | Path) -> bool:
    """Whether a name can be printed and written into a table: Linux allows any bytes in one."""
    try:
        str(name).encode()
    except UnicodeEncodeError:
        return False
    return True
