"""The order of the classes by size, from a file of the user or from the images."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from oltr.data.lists import list_lines
from oltr.data.scan import IMAGE_SUFFIXES
from oltr.errors import UserError
from oltr.wording import count, first_few

FORMS = (
    "One class per line, the largest first; or `class number` lines with its size; or a list of image paths, "
    "which are counted; or JSON with base_classes and novel_classes."
)


def largest_first(sizes: Mapping[str, int], ranks: Mapping[str, int] | None, seed: int) -> list[str]:
    """Classes from the largest on: by rank, if given, then by size; ties are drawn by the seed."""
    names = sorted(sizes)
    drawn = np.random.default_rng(seed).permutation(len(names))
    tie = {names[position]: place for place, position in enumerate(drawn)}
    return sorted(names, key=lambda name: (ranks[name] if ranks else 0, -sizes[name], tie[name]))


def read_order(file: Path, classes: list[str], class_of: Callable[[str], str]) -> dict[str, int]:
    """The rank of each class (0 is the largest; several may share one) from an order file.

    `classes` in label order, to which numbers in the file refer; `class_of` tells the class of an image path.
    """
    file = file.expanduser()
    if not file.is_file():
        raise UserError(f"There is no order file {file}.", FORMS)
    ranks = _base_and_novel(file, classes) if file.suffix == ".json" else _from_lines(file, class_of)
    if lacking := [name for name in classes if name not in ranks]:
        raise UserError(
            f"The order {file} lacks {count(len(lacking), 'class')}: {first_few(lacking)}.", FORMS
        )
    return ranks


def _base_and_novel(file: Path, classes: list[str]) -> dict[str, int]:
    """Base classes before novel ones; they are names or positions in label order, from 0 or 1."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        groups = [list(content[key]) for key in ("base_classes", "novel_classes") if key in content]
        if len(groups) == 1:  # the low-shot benchmark keeps its novel classes in two halves
            groups.append([*content["novel_classes_1"], *content["novel_classes_2"]])
        base, novel = groups
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"The order {file} cannot be read: {error!r}.", FORMS) from None
    entries = [*base, *novel]
    if entries and all(isinstance(entry, int) for entry in entries):
        start = 1 if max(entries) == len(classes) else 0
        if min(entries) < start or max(entries) >= len(classes) + start:
            raise UserError(f"The order {file} numbers classes beyond the {len(classes):,} there are.")
        base, novel = ([classes[entry - start] for entry in group] for group in (base, novel))
    return {str(name): rank for rank, group in enumerate((base, novel)) for name in group}


def _from_lines(file: Path, class_of: Callable[[str], str]) -> dict[str, int]:
    lines = [line for _, line in list_lines(file)]
    if not lines:
        raise UserError(f"The order {file} is empty.", FORMS)
    first = [part.rsplit(maxsplit=1) for part in lines]
    numbered = all(len(parts) == 2 and parts[1].isdecimal() for parts in first)
    if (first[0][0] if numbered else lines[0]).lower().endswith(IMAGE_SUFFIXES):
        paths = (parts[0] for parts in first) if numbered else iter(lines)
        return _by_size(Counter(class_of(path.lstrip("/")) for path in paths))
    if numbered:
        return _by_size({class_of(name.lstrip("/") + "/"): int(size) for name, size in first})
    return {class_of(line.lstrip("/") + "/"): rank for rank, line in enumerate(dict.fromkeys(lines))}


def _by_size(sizes: Mapping[str, int]) -> dict[str, int]:
    distinct = sorted(set(sizes.values()), reverse=True)
    rank = {size: place for place, size in enumerate(distinct)}
    return {name: rank[size] for name, size in sizes.items()}
