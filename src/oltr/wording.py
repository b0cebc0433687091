"""How counts and long lists of names are said in messages."""

from __future__ import annotations

from collections.abc import Iterable


class Caution(str):
    """A note on data that is shown as a warning."""


def count(number: int, noun: str) -> str:
    """`1 image`, `2,000 images`, `3 classes`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def first_few(names: Iterable[object], most: int = 5) -> str:
    """The first names, and how many more there are."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
