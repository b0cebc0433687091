"""Recipes: a setting's data, backbone and budget (NAME.yaml), and what a method changes (methods/NAME.yaml).

A run is put together in this order, later wins: the defaults of config.py, the recipe, the method's file if
there is one, what the recipe says of this method, the command line. Numbers of the method that are given
nowhere have the defaults of its `Settings`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from oltr.config import RunConfig, build
from oltr.errors import UserError
from oltr.old_names import current_values
from oltr.recipes.files import HOME, file_names, find_file
from oltr.registry import unknown_name

__all__ = [
    "HOME",
    "Recipe",
    "file_names",
    "find_file",
    "load_recipe",
    "merge",
    "read_entries",
    "recipe_names",
    "resolve",
    "with_epochs",
]

_RECIPE_KEYS = {"about", "base", "method", "run", "methods", "expect"}


@dataclass(frozen=True)
class Recipe:
    """A setting: values for RunConfig, changes per method, and published rows to stand beside ours."""

    name: str
    about: str
    run: dict[str, Any]
    methods: dict[str, dict[str, Any]]
    expect: dict[str, dict[str, Any]]
    method: str = "oltr"  # where the user names none


def recipe_names() -> list[str]:
    """The settings of this package and of plug-ins."""
    return file_names()


def load_recipe(name: str) -> Recipe:
    """A recipe by its name, or from a YAML file of the user's own."""
    own_file = name.endswith((".yaml", ".yml"))
    if own_file and not Path(name).is_file():
        raise UserError(f"There is no file {name}.", try_this="a YAML file, or a name of `oltr recipes`")
    path = Path(name) if own_file else find_file(name)
    if path is None:
        raise unknown_name("recipe", name, recipe_names())
    values = read_entries(path)
    for key in values:
        if key not in _RECIPE_KEYS:
            raise unknown_name(f"entry in recipe {path.name}", str(key), _RECIPE_KEYS)
    for key in ("run", "methods", "expect"):
        values[key] = _entries(values.get(key), f"{key} in recipe {path.name}")
    values["run"] = current_values(values["run"])
    if base := values.pop("base", None):
        below = load_recipe(base)
        values = merge(
            {
                "about": below.about,
                "method": below.method,
                "run": below.run,
                "methods": below.methods,
                "expect": {},
            },
            values,
        )
    method = values.get("method", "oltr")
    return Recipe(
        path.stem, values.get("about", ""), values["run"], values["methods"], values["expect"], method
    )


def resolve(
    recipe: str,
    method: str,
    changes: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> RunConfig:
    """What is said anywhere of `method` under `recipe`, with the caller's nested `changes` on top.

    `settings` are the defaults of the method's own numbers.
    """
    chosen, own = load_recipe(recipe), find_file(method, "methods")
    values = merge({"settings": settings or {}}, chosen.run)
    if own is not None:
        values = merge(values, current_values(read_entries(own)))
    own_changes = _entries(chosen.methods.get(method), f"{method} in recipe {recipe}")
    values = merge(values, current_values(own_changes))
    values = merge(values, changes or {})
    return build(RunConfig, values | {"method": method, "recipe": recipe})


def with_epochs(config: RunConfig, epochs: tuple[int, ...]) -> RunConfig:
    """The run with `--epochs FIRST [SECOND]`, milestones moved in proportion."""
    if len(epochs) == 1 and not config.stage1.epochs:
        epochs = (0, *epochs)  # the second is the only one
    if any(e < 0 for e in epochs) or not any(epochs):
        usual = " ".join(str(config.stage(number + 1).epochs) for number in range(config.num_stages))
        raise UserError(
            f"--epochs {' '.join(map(str, epochs))} trains nothing.",
            try_this=f"--epochs {usual}, which is what there is without it",
        )
    if len(epochs) > config.num_stages:
        raise UserError(
            f"--epochs has {len(epochs)} numbers, but {config.method} under recipe {config.recipe} has "
            f"{config.num_stages} stage{'s' if config.num_stages > 1 else ''}.",
            try_this=f"--epochs {sum(epochs) if config.num_stages == 1 else ' '.join(map(str, epochs[:2]))}",
        )
    config = dataclasses.replace(config, stage1=config.stage1.lasting(epochs[0]))
    if len(epochs) == 2 and config.stage2 is not None:
        config = dataclasses.replace(config, stage2=config.stage2.lasting(epochs[1]))
    return config


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings merged; anything else, and a table of milestones, replaces what was there."""
    merged = dict(below)
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping) and key != "lr_milestones":
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def read_entries(path: Path) -> dict[str, Any]:
    """The named entries of a YAML file; whatever is wrong with it is a UserError."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise UserError(f"{path} is not valid YAML.", str(problem)) from problem
    return _entries(values, str(path))


def _entries(values: Any, where: str) -> dict[str, Any]:
    """A mapping from YAML, where an empty entry is None."""
    if not isinstance(values or {}, dict):
        raise UserError(f"{where} should hold named entries.")
    return values or {}
