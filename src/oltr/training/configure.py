"""From the options of a command line or of `Recognizer` to a checked configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from oltr.config import RunConfig, build
from oltr.errors import UserError
from oltr.old_names import current_values
from oltr.packaged_weights import resolve_weights
from oltr.recipes import merge, resolve, with_epochs
from oltr.training.card import with_card
from oltr.training.limits import check_limits

SCRATCH = "none"  # --weights none: no pretrained weights


def configure(
    recipe: str,
    method: str,
    *,
    backbone: str | None = None,
    weights: str | None = None,
    train_backbone: str | None = None,
    teacher: str | None = None,
    image_size: int | None = None,
    epochs: Sequence[int] = (),
    seed: int = 0,
    changes: Sequence[str] = (),
) -> RunConfig:
    """The recipe and method with the given changes on top, names and values checked before any work."""
    values: dict[str, Any] = {"seed": seed}
    given = ("backbone", backbone), ("weights", weights), ("train_backbone", train_backbone)
    for name, value in given:
        if value is not None:
            values[name] = None if (name, value) == ("weights", SCRATCH) else value
    if teacher is not None:
        values["distill"] = {"teacher": teacher}
    wanted = merge(values, parse_changes(changes))
    weights = recipe_config(recipe, method, wanted).weights
    if (follows := resolve_weights(weights, wanted.get("backbone"))[1]) is not None:
        values["backbone"] = follows
    return _checked(assemble(recipe, method, values, changes, image_size=image_size, epochs=epochs))


def assemble(
    recipe: str,
    method: str,
    values: Mapping[str, Any],
    changes: Sequence[str] = (),
    *,
    image_size: int | None = None,
    epochs: Sequence[int] = (),
) -> RunConfig:
    """The recipe and method with `values` and `changes` on top; nothing is looked for on this machine."""
    changed = parse_changes(changes)
    if "eval_size" in (changed.get("data") or {}):
        changed = merge({"data": {"eval_size_by": "fixed"}}, changed)  # asked for, not a candidate
    config = _one_view(with_card(recipe_config(recipe, method, merge(values, changed))))
    if image_size is not None:
        config = _at_size(config, image_size)
    if epochs:
        config = with_epochs(config, tuple(epochs))
    # What was set by name stays, where the size or the epochs would have moved it in proportion.
    return _freeze_backbone(build(RunConfig, merge(dataclasses.asdict(config), changed)))


def recipe_config(recipe: str, method: str, changes: Mapping[str, Any] | None = None) -> RunConfig:
    """The configuration of a method under a recipe, all of the method's settings included."""
    from oltr.methods import METHODS

    return resolve(recipe, method, changes, METHODS[method].all_settings())


def parse_changes(changes: Sequence[str]) -> dict[str, Any]:
    """All of `--set` together, later ones on top."""
    changed: dict[str, Any] = {}
    for change in changes:
        changed = merge(changed, parse_change(change))
    return changed


def parse_change(text: str) -> dict[str, Any]:
    """`a.b=1` as {"a": {"b": 1}}; the value is read as YAML."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UserError(f"--set {text} has no value.", try_this="--set NAME=VALUE, e.g. --set stage2.lr=0.01")
    if name in ("method", "recipe"):
        raise UserError(f"--set {name} is not possible.", try_this=f"--{name} {value}")
    try:
        parsed: Any = yaml.safe_load(value)
    except yaml.YAMLError as problem:
        why = str(getattr(problem, "problem", None) or problem)
        raise UserError(f"--set {text}: the value is not valid YAML.", f"The parser says: {why}.") from None
    for part in reversed(name.split(".")):
        parsed = {part: parsed}
    return current_values(parsed)


def _at_size(config: RunConfig, image_size: int) -> RunConfig:
    """The run at another image size, the sizes that it is stored and evaluated at in proportion."""
    data, ratio = config.data, image_size / config.data.image_size
    changes: dict[str, Any] = {"image_size": image_size, "stored_size": round(ratio * data.stored_size)}
    if data.eval_size is not None:
        changes["eval_size"] = round(ratio * data.eval_size)
    return dataclasses.replace(config, data=dataclasses.replace(data, **changes))


def _one_view(config: RunConfig) -> RunConfig:
    """Without the recipe's further views where no backbone learns from them."""
    if config.train_backbone != "none":
        return config
    stages: dict[str, Any] = {
        f"stage{number}": dataclasses.replace(config.stage(number), views=1, mix="none", mosaics=0.0)
        for number in range(1, config.num_stages + 1)
    }
    return dataclasses.replace(config, **stages)


def _freeze_backbone(config: RunConfig) -> RunConfig:
    """With the backbone among the frozen roles of every stage, where none of it learns."""
    if config.train_backbone != "none":
        return config
    stages: dict[str, Any] = {
        f"stage{number}": dataclasses.replace(
            stage, frozen=tuple(dict.fromkeys((*stage.frozen, "backbone"))), freeze_statistics=True
        )
        for number in range(1, config.num_stages + 1)
        if (stage := config.stage(number))
    }
    return dataclasses.replace(config, **stages)


def _checked(config: RunConfig) -> RunConfig:
    """Fail early, with the name in question, rather than after the images are read."""
    from oltr.methods import METHODS
    from oltr.nn.backbone import check_backbone

    if config.train_backbone != "all" and config.weights is None:
        raise UserError(
            f"--train-backbone {config.train_backbone} needs pretrained weights.",
            "Without them most of the network would stay random.",
            "--weights NAME (`oltr weights`)",
        )
    check_limits(config)
    method = METHODS[config.method]
    config = dataclasses.replace(config, settings=method.all_settings(config.settings))
    if method.needs_stage2 and config.stage2 is None:
        raise UserError(
            f"{config.method} needs a second stage.",
            "All that it does differently happens there.",
            "the recipe's stage2, or another method",
        )
    check_backbone(config.backbone, config.weights)
    return config
