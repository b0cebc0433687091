"""Objects of other packages: through entry points, or named as `package.module:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Plugin:
    """An entry point: the name it is found by, and the object of the package that it stands for."""

    entry_point: EntryPoint

    @property
    def name(self) -> str:
        return self.entry_point.name

    def __str__(self) -> str:
        package = self.entry_point.dist.name if self.entry_point.dist else "an unnamed package"
        return f"{self.name!r} of {package} ({self.entry_point.value})"

    def load(self) -> Any:
        """The object; any failure on the way to it is a UserError with the reason."""
        try:
            return self.entry_point.load()
        except (Exception, SystemExit) as problem:
            raise UserError(f"{self} cannot be loaded.", failure(problem)) from problem

    def folder(self) -> Path:
        """The folder of the package, or the folder that the module is in; neither is imported."""
        module = self.entry_point.value.partition(":")[0].strip()
        try:
            spec = importlib.util.find_spec(module)
        except (Exception, SystemExit) as problem:
            raise UserError(f"{self} cannot be loaded.", failure(problem)) from problem
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        if spec is not None and not places and spec.origin:
            places = [str(Path(spec.origin).parent)]
        if not places or not Path(places[0]).is_dir():
            raise UserError(f"{self} cannot be loaded.", f"There is no folder of {module}.")
        return Path(places[0])


def find_plugins(group: str) -> list[Plugin]:
    """What the installed packages offer in an entry-point group, by name; nothing is imported."""
    from importlib.metadata import entry_points

    found = map(Plugin, entry_points(group=group))
    return sorted(found, key=lambda plugin: (plugin.name, str(plugin)))


def skip_plugin(kind: str, plugin: Plugin, why: str) -> None:
    """Warn that a plug-in is left out: it must not stop those who do not use it."""
    from oltr.console import console

    console.warn(f"the {kind} {plugin} is left out: {why}")


@cache
def load_backbones() -> dict[str, str]:
    """Import the modules that register networks with timm; why each of those that failed did."""
    failures = {}
    for plugin in find_plugins("oltr.backbones"):
        try:
            plugin.load()
        except UserError as problem:
            failures[plugin.name] = problem.why
            skip_plugin("backbone", plugin, problem.why)
    return failures


def is_reference(name: str) -> bool:
    """Whether a name has the form `package.module:attribute`."""
    return _REFERENCE.fullmatch(name) is not None


def import_reference(name: str, kind: str, folder: str | Path = ".") -> Any:
    """The object that `package.module:attribute` names.

    Modules are looked for among the installed packages, then in `folder` and in the current folder.
    """
    module_name, _, attribute = name.partition(":")
    found = _import_module(module_name, f"{kind} {name}", folder)
    for part in attribute.split("."):
        if not hasattr(found, part):
            where = getattr(sys.modules[module_name], "__file__", None) or "its folder"
            raise UserError(
                f"There is no {kind} {name}.", f"{module_name} (from {where}) has no attribute {attribute!r}."
            )
        found = getattr(found, part)
    return found


def failure(problem: BaseException) -> str:
    """An exception of somebody else's code in one line: kind, text, and where it was raised."""
    text = " ".join(str(problem).split())
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(problem).__name__}{': ' if text else ''}{text}{where}"


def _import_module(name: str, wanted: str, folder: str | Path) -> Any:
    # The folders stay on the path: worker processes import the module again to unpickle its objects.
    folders = list(dict.fromkeys(str(Path(place).expanduser().absolute()) for place in (folder, ".")))
    sys.path += [place for place in folders if place not in sys.path]
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{name}.".startswith(f"{problem.name}."):
            raise UserError(f"The {wanted} cannot be imported.", failure(problem)) from problem
        raise UserError(
            f"The {wanted} cannot be imported.",
            f"There is no module {problem.name} among the installed packages or in {' or '.join(folders)}.",
            "the folder that holds it as current folder, or install its package",
        ) from None
    except (Exception, SystemExit) as problem:
        raise UserError(f"The {wanted} cannot be imported.", failure(problem)) from problem
