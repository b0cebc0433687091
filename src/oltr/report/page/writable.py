"""Whether files can be written somewhere, found out before hours of work are lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from oltr.errors import UserError


def check_writable(folder: Path, what: Path) -> None:
    """Refuse a folder, there already or still to be made, in which `what` cannot be written."""
    there = folder
    try:
        there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as problem:
        raise UserError(
            f"{what} cannot be written: {problem.strerror or problem}.",
            f"{there} takes no files.",
            "another folder",
        ) from None
