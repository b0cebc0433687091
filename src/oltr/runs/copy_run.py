"""A run folder copied, whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from oltr.errors import UserError


def copy_run(run: Path, to: Path, what: str = "path") -> Path:
    """A temporary copy beside `to`, without checkpoints, to be finished and then put in its place."""
    if to.exists() and not (to.is_dir() and not any(to.iterdir())):
        why = "It is not empty." if to.is_dir() else "It is a file."
        raise UserError(f"{what} is {to}.", why, "a new or empty folder")
    to = to.absolute()
    if to.is_relative_to(run.absolute()):
        raise UserError(f"{what} {to} lies in the run itself.", try_this="a folder beside it")
    part = to.with_name(f".{to.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(run, part, ignore=shutil.ignore_patterns("checkpoints"))
    return part
