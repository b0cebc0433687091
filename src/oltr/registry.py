"""Name → object tables that answer a misspelt name with the nearest ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from oltr.errors import UserError

T = TypeVar("T")


def unknown_name(kind: str, name: str, names: Iterable[str]) -> UserError:
    """The error for a `name` that is not among `names`, with the nearest spelling first."""
    names = sorted(names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    shown = names if len(names) <= 30 else [*names[:5], f"... ({len(names):,} in all)"]
    hint = f"did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(shown)}"
    return UserError(f"There is no {kind} called {name!r}.", try_this=hint)


class Registry(Generic[T]):
    """A table of named objects of one kind ("method", "score" ...)."""

    def __init__(self, kind: str):
        self.kind = kind
        self._table: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that files an object under `name`; a name is given once."""

        def file(entry: T) -> T:
            if name in self._table:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._table[name] = entry
            return entry

        return file

    def __getitem__(self, name: str) -> T:
        if name not in self._table:
            raise unknown_name(self.kind, name, self._table)
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._table))

    def __contains__(self, name: str) -> bool:
        return name in self._table
