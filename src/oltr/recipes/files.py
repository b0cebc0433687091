"""Where recipe files lie: in this package, and in the packages of the entry-point group `oltr.recipes`.

A folder of recipes holds NAME.yaml (settings), methods/NAME.yaml (a method's stages and numbers) and
suites/NAME.yaml (tables).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from oltr.errors import UserError
from oltr.plugins import find_plugins, skip_plugin
from oltr.wording import first_few

HOME = Path(__file__).parent
KINDS = ("", "methods", "suites")


def find_file(name: str, kind: str = "") -> Path | None:
    """The file of that name; what comes with this package has precedence."""
    own = HOME / kind / f"{name}.yaml"
    if own.is_file():
        return own
    return _from_plugins().get(f"{kind}/{name}")


def file_names(kind: str = "") -> list[str]:
    """The names of all files of a kind."""
    others = (place.partition("/") for place in _from_plugins())
    return sorted({*_names(HOME / kind), *(name for found, _, name in others if found == kind)})


@cache
def _from_plugins() -> dict[str, Path]:
    """`kind/name` → file, of all plug-ins; one that repeats a name is told, and the first keeps it."""
    found: dict[str, Path] = {}
    for plugin in find_plugins("oltr.recipes"):
        try:
            folder = plugin.folder()
        except UserError as problem:
            skip_plugin("recipe package", plugin, problem.why)
            continue
        files = {
            f"{kind}/{name}": folder / kind / f"{name}.yaml"
            for kind in KINDS
            for name in _names(folder / kind)
        }
        taken = [place for place in files if place in found or (HOME / f"{place}.yaml".lstrip("/")).is_file()]
        if taken:
            names = first_few(f"{place}.yaml".lstrip("/") for place in taken)
            skip_plugin("part", plugin, f"there are others called {names}.")
        found = files | found
    return found


def _names(folder: Path) -> list[str]:
    return [path.stem for path in folder.glob("*.yaml")]
