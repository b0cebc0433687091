"""A table `label,parent`: what each label is a kind of (species and genus, genus and family)."""

from __future__ import annotations

import csv
import difflib
from io import StringIO
from pathlib import Path

from oltr.errors import UserError
from oltr.wording import first_few

COLUMNS = ("label", "parent")
EXAMPLE = "a CSV file with a first line `label,parent` and rows like `lynx,cat`"


def read_parent_table(path: str | Path) -> dict[str, str]:
    """The parent of each label that has one, without cycles; a label whose parent is empty has none."""
    path, parents = Path(path).expanduser(), dict[str, str]()
    for number, (label, parent) in enumerate(_rows(path), start=2):
        if parent and not label:
            raise UserError(f"{path}, line {number}: the label is empty.", try_this=EXAMPLE)
        if parent and parents.setdefault(label, parent) != parent:
            raise UserError(
                f"{path}, line {number}: {label!r} has two parents, {parents[label]!r} and {parent!r}.",
                "A label has one parent, which may have a parent itself.",
                f"one row for {label!r}",
            )
    if not parents:
        raise UserError(f"{path} names no parent.", try_this=EXAMPLE)
    _refuse_cycles(parents, path)
    return parents


def ancestors(label: str, parents: dict[str, str]) -> list[str]:
    """Its parent, the parent of that, and so on."""
    found = []
    while label in parents:
        label = parents[label]
        found.append(label)
    return found


def heights(parents: dict[str, str]) -> dict[str, int]:
    """How many steps the longest way down from each name has: 0 for a label that is no parent."""
    found = dict.fromkeys((*parents, *parents.values()), 0)
    for label in parents:
        for steps, name in enumerate(ancestors(label, parents), start=1):
            found[name] = max(found[name], steps)
    return found


def _rows(path: Path) -> list[tuple[str, str]]:
    """Label and parent of each row, stripped."""
    try:
        lines = list(csv.reader(StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    except FileNotFoundError:
        raise UserError(f"There is no table {path}.", try_this=EXAMPLE) from None
    except UnicodeDecodeError as problem:
        raise UserError(f"{path} is not UTF-8 text (byte {problem.start}).", try_this=EXAMPLE) from None
    except (OSError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise UserError(f"{path} cannot be read: {reason}.", try_this=EXAMPLE) from None
    if not any(map(any, lines)):
        raise UserError(f"{path} is empty.", try_this=EXAMPLE)
    names = [name.strip() for name in lines[0]]
    if missing := [column for column in COLUMNS if column not in names]:
        raise _missing_columns(path, names, missing)
    places, widest = [names.index(column) for column in COLUMNS], len(names)
    padded = [line + [""] * (widest - len(line)) for line in lines[1:]]
    return [(line[places[0]].strip(), line[places[1]].strip()) for line in padded]


def _missing_columns(path: Path, names: list[str], missing: list[str]) -> UserError:
    hint = EXAMPLE
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        hint = "separate the columns with commas"
    elif near := difflib.get_close_matches(missing[0], [name.lower() for name in names], n=1, cutoff=0.5):
        meant = next(name for name in names if name.lower() == near[0])
        hint = f"did you mean to rename {meant!r} → {missing[0]!r}?"
    lacks = f"{'column' if len(missing) == 1 else 'columns'} {', '.join(missing)}"
    return UserError(f"{path} lacks the {lacks}.", f"It has: {first_few(names, 12)}.", hint)


def _refuse_cycles(parents: dict[str, str], path: Path) -> None:
    safe: set[str] = set()
    for label in parents:
        way = [label]
        while way[-1] in parents and way[-1] not in safe:
            if (above := parents[way[-1]]) in way:
                cycle = " → ".join([*way[way.index(above) :], above])
                raise UserError(
                    f"{path}: the parents go round in a circle: {cycle}.",
                    "A label cannot stand above itself.",
                    "leave the parent of the topmost label empty",
                )
            way.append(above)
        safe.update(way)
