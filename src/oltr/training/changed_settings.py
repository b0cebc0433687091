"""The settings in which a run differs from its recipe."""

from __future__ import annotations

import dataclasses
from typing import Any

import yaml

from oltr.config import RunConfig, plain_values
from oltr.errors import UserError
from oltr.training.command import settings_changed
from oltr.training.configure import recipe_config


def as_yaml(value: Any) -> str:
    """A Python value as the YAML that --set reads."""
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()


def settings_beside_recipe(config: RunConfig) -> dict[str, Any] | None:
    """The settings in which a run differs from its recipe, but for those that name it."""
    try:
        usual = recipe_config(config.recipe, config.method)
    except UserError:  # e.g. a recipe file that is no longer there: `fit` will say so
        return None
    base, wanted = (plain_values(dataclasses.asdict(each)) for each in (usual, config))
    for name in ("method", "recipe", "seed", "backbone", "weights", "decision"):
        del wanted[name]
    changes = (change.partition("=") for change in settings_changed(base, wanted))
    return {name: yaml.safe_load(value) for name, _, value in changes} or None
