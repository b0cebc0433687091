"""The `oltr train` command that leads to a given configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from oltr.config import RunConfig
from oltr.training.choose import PHOTOS
from oltr.training.configure import SCRATCH, assemble, recipe_config
from oltr.training.run_folder import plain_values

_GIVEN = ("method", "recipe", "seed")  # by options that are always there
_OPTIONS = ("backbone", "weights", "train_backbone")  # by options where they differ from the recipe


def train_command(
    config: RunConfig, source: str, *, root: str | Path | None = None, out: str | Path | None = None
) -> tuple[list[str], bool]:
    """The words of `oltr train` after `oltr`, and whether they lead to exactly this configuration.

    They do not if the recipe has gained settings since that the configuration lacks.
    """
    own = {name: getattr(config, name) for name in _OPTIONS}
    recipe = recipe_config(config.recipe, config.method)
    usual = assemble(config.recipe, config.method, own)
    base, wanted = (plain_values(dataclasses.asdict(each)) for each in (usual, config))
    words = ["train", source, *(() if root is None else ("--root", str(root)))]
    words += ["--recipe", config.recipe, "--method", config.method, "--seed", str(config.seed)]
    options = {name: value for name, value in own.items() if value not in (None, getattr(recipe, name))}
    if config.recipe == PHOTOS and config.weights is None:
        words += ["--weights", SCRATCH]  # or weights at hand would be used
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    rest = {key: value for key, value in wanted.items() if key not in (*_GIVEN, *options)}
    changes = settings_changed(base | {name: getattr(recipe, name) for name in own}, rest)
    for change in changes:
        words += ["--set", change]
    words += [] if out is None else ["--out", str(out)]
    again = assemble(config.recipe, config.method, own | {"seed": config.seed}, changes)
    return words, again == config


def settings_changed(base: Mapping[str, Any], wanted: Mapping[str, Any], place: str = "") -> list[str]:
    """What leads from one configuration to another, as NAME=VALUE of `--set`.

    >>> settings_changed({"seed": 0, "stage1": {"lr": 0.1}}, {"seed": 0, "stage1": {"lr": 1e-05}})
    ['stage1.lr=1.0e-05']
    """
    changes = []
    for key, value in wanted.items():
        before = base.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping) and key != "lr_milestones":
            changes += settings_changed(before, value, f"{place}{key}.")
        elif value != before:
            changes.append(f"{place}{key}={_as_yaml(value)}")
            if (by := wanted.get(f"{key}_by")) == base.get(f"{key}_by") is not None:
                changes.append(f"{place}{key}_by={by}")  # or a size that is set would be taken as settled
    return changes


def _as_yaml(value: Any) -> str:
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=True, width=10**6)
    return text.strip().removesuffix("...").strip()  # the mark after a bare value
