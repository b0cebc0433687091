"""Name → object tables, open to other packages, that answer a misspelt name with the nearest ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from oltr.errors import UserError
from oltr.plugins import find_plugins, import_reference, is_reference, skip_plugin

T = TypeVar("T")


def unknown_name(kind: str, name: str, names: Iterable[str]) -> UserError:
    """The error for a `name` that is not among `names`, with the nearest spelling first."""
    names = sorted(names)
    if not names:
        return UserError(f"There is no {kind} called {name!r}.", "There are none here.")
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    shown = names if len(names) <= 30 else [*names[:5], f"... ({len(names):,} in all)"]
    hint = f"did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(shown)}"
    return UserError(f"There is no {kind} called {name!r}.", try_this=hint)


class Registry(Generic[T]):
    """A table of named objects of one kind ("method", "score" ...).

    `group` is the entry-point group through which other packages add to it, read when a name is not found or
    all are listed. What comes from outside must be a subclass of `base` with the class attributes of `needs`
    (name → type). A lookup also takes `package.module:Class`.
    """

    def __init__(
        self,
        kind: str,
        group: str | None = None,
        base: type | None = None,
        needs: Mapping[str, type] | None = None,
    ):
        self.kind, self.group, self.base, self.needs = kind, group, base, needs or {}
        self._table: dict[str, T] = {}
        self._left_out: dict[str, UserError] = {}
        self._plugins_read = group is None

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that adds an object under `name`; a name is given once."""

        def add(entry: T) -> T:
            if name in self._table:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._table[name] = entry
            return entry

        return add

    def __getitem__(self, name: str) -> T:
        if name in self:
            return self._table[name]
        if is_reference(name):
            return self._checked(import_reference(name, self.kind), name)
        if name in self._left_out:
            raise self._left_out[name]
        raise unknown_name(self.kind, name, self._table)

    def __iter__(self) -> Iterator[str]:
        self._read_plugins()
        return iter(sorted(self._table))

    def __contains__(self, name: str) -> bool:
        if name not in self._table and not is_reference(name):
            self._read_plugins()
        return name in self._table

    def _read_plugins(self) -> None:
        if self._plugins_read or self.group is None:
            return
        self._plugins_read = True  # before loading: a plug-in may look up others
        for plugin in find_plugins(self.group):
            try:
                entry = self._checked(plugin.load(), str(plugin))
                if self._table.setdefault(plugin.name, entry) is not entry:
                    raise UserError(
                        f"{plugin} cannot be added.", f"There is another {self.kind} of that name."
                    )
            except UserError as problem:
                self._left_out[plugin.name] = problem
                skip_plugin(self.kind, plugin, problem.why)

    def _checked(self, entry: Any, name: str) -> T:
        """An object from outside, refused where it is of the wrong kind."""
        if fault := self._fault(entry):
            raise UserError(f"{name} cannot be used as a {self.kind}.", fault)
        return entry

    def _fault(self, entry: Any) -> str:
        if self.base is None:
            return ""
        if not (isinstance(entry, type) and issubclass(entry, self.base)):
            return f"It is no subclass of {self.base.__module__}.{self.base.__qualname__}."
        if missing := sorted(getattr(entry, "__abstractmethods__", ())):
            return f"It does not define {', '.join(missing)}."
        for attribute, kind in self.needs.items():
            if not isinstance(getattr(entry, attribute, None), kind):
                return f"Its attribute `{attribute}` is missing or no {kind.__name__}."
        return ""
