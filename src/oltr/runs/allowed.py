"""The classes that can occur at a place, to which answers are restricted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oltr.errors import UserError
from oltr.registry import unknown_name


@dataclass(frozen=True)
class Allowed:
    """Some of a run's classes, in the run's order."""

    names: list[str]
    columns: list[int]  # of the run's logits


def allowed_classes(classes: Sequence[str], wanted: str | Path | Sequence[str]) -> Allowed:
    """Those of the classes that a text with commas, a text file with one on each line, or a list names."""
    names = _listed(classes, wanted)
    if not names:
        raise UserError(f"No class is allowed: {wanted!r} names none.", try_this="names of the run's classes")
    for name in names:
        if name not in classes:
            raise unknown_name("class", name, classes)
    columns = sorted({classes.index(name) for name in names})
    return Allowed([classes[column] for column in columns], columns)


def _listed(classes: Sequence[str], wanted: str | Path | Sequence[str]) -> list[str]:
    if not isinstance(wanted, str | Path):
        return list(wanted)
    if str(wanted) in classes:  # a name with a comma in it, too
        return [str(wanted)]
    file = Path(wanted).expanduser()
    if file.is_file():
        try:
            lines = file.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as problem:
            raise UserError(f"{file} is not UTF-8 text (byte {problem.start}).") from None
        return [line.strip() for line in lines if line.strip()]
    if file.suffix == ".txt":
        raise UserError(f"There is no file {file}.", try_this="a text file with one class on each line")
    return [part.strip() for part in str(wanted).split(",") if part.strip()]
