"""What a report must hold before anyone reads its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oltr.metrics.shots import GROUPS

_REQUIRED = ("schema", "method", "backbone", "num_classes", "shots", "closed", "per_class")
_CLASS = ("name", "train_count", "accuracy", "f1")


def fault(data: Any) -> str:
    """The first thing that is missing or is not what it should be; empty for a whole report."""
    if not isinstance(data, Mapping) or any(key not in data for key in _REQUIRED):
        return f"It must hold {', '.join(_REQUIRED)}."
    classes, lines = data["num_classes"], data["per_class"]
    if not isinstance(classes, int) or not isinstance(lines, Sequence) or len(lines) != classes:
        return "per_class must have as many entries as num_classes says."
    return (
        _part(data, "shots", whole=GROUPS)
        or _part(data, "closed", numbers=(*GROUPS, "overall"))
        or (_part(data, "open", words=("score",), given=("threshold",)) if "open" in data else "")
        or next(filter(None, (_class_line(line, place) for place, line in enumerate(lines))), "")
    )


def _part(
    data: Mapping[str, Any],
    name: str,
    numbers: Sequence[str] = (),
    whole: Sequence[str] = (),
    words: Sequence[str] = (),
    given: Sequence[str] = (),
) -> str:
    """A part with these entries, and whatever others; each value there is a number, a word or null."""
    part = data[name]
    if not isinstance(part, Mapping):
        return f"{name} must hold names and values."
    for key in (*numbers, *whole, *words, *given):
        if key not in part:
            return f"{name}.{key} is missing."
    for key, value in part.items():
        kinds: Any = int if key in whole else str if key in words else float | int | None
        if (key in given and value is None) or isinstance(value, bool) or not isinstance(value, kinds):
            return f"{name}.{key} must not be {value!r}."
    return ""


def _class_line(line: Any, place: int) -> str:
    where = f"per_class[{place}]"
    if not isinstance(line, Mapping):
        return f"{where} must hold {', '.join(_CLASS)}."
    for key in _CLASS:
        if key not in line:
            return f"{where}.{key} is missing."
        kinds: Any = str if key == "name" else int if key == "train_count" else float | int | None
        if not isinstance(line[key], kinds):
            return f"{where}.{key} must not be {line[key]!r}."
    return ""
