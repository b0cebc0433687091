"""A run folder copied, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oltr.errors import UserError
from oltr.files import sync, unwritable
from oltr.runs.history import History
from oltr.training.run_folder import RunFolder


@contextmanager
def copied_run(run: Path, to: Path, what: str = "path") -> Iterator[Path]:
    """A temporary copy beside `to`, without checkpoints, to be finished in the block; then it is there.

    The history is copied first, as it is between two actions: all that it speaks of is then in the folder.
    """
    if to.exists() and not (to.is_dir() and not any(to.iterdir())):
        why = "It is not empty." if to.is_dir() else "It is a file."
        raise UserError(f"{what} is {to}.", why, "a new or empty folder")
    to = to.absolute()
    if to.is_relative_to(run.absolute()):
        raise UserError(f"{what} {to} lies in the run itself.", try_this="a folder beside it")
    part = to.with_name(f".{to.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    history = RunFolder(run).history
    left_out = shutil.ignore_patterns("checkpoints", f"{history.name}*", ".*.part")
    try:
        with unwritable(to):
            part.mkdir(parents=True)
            History(history).copy(RunFolder(part).history)
            shutil.copytree(run, part, ignore=left_out, dirs_exist_ok=True)
        yield part
        with unwritable(to):
            for place in (part, *part.rglob("*")):
                sync(place)
            part.replace(to)  # an empty folder there gives way
            sync(to.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)
