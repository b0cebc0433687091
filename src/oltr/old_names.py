"""Names of earlier versions, in one table: old run folders, own recipes and `--set` still work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from oltr.errors import UserError

T = TypeVar("T")

# Renamed or removed. Key: where a setting stands; value: its new name, or None where it is gone.
SETTINGS: dict[tuple[str, str], str | None] = {
    ("stage1", "drops"): "lr_milestones",
    ("stage2", "drops"): "lr_milestones",
    ("settings", "attention_stage"): None,
    ("settings", "mixed_prior"): None,  # of oltr2
}
VALUES: dict[tuple[str, str, str], Any] = {
    ("stage1", "sampler", "plain"): "shuffle",
    ("stage2", "sampler", "plain"): "shuffle",
    ("settings", "attention_form", "any"): "pointwise",
    # YAML's strings, which run.yaml kept as they were.
    ("settings", "within_weight", "5e-5"): 5e-5,
    ("settings", "between_weight", "1e-4"): 1e-4,
}
# A setting that is gone may still be there with the value that changed nothing.
HARMLESS: dict[tuple[str, str], Any] = {
    ("settings", "attention_stage"): -1,
    ("settings", "mixed_prior"): "images",
}
# Settings that came later: a run that has the first has been trained with this value of the second.
CAME_LATER: dict[tuple[str, str], tuple[str, Any]] = {
    ("settings", "attention_form"): ("attention_start", "zero"),
    ("settings", "contrast_temperature"): ("class_means", "none"),  # of oltr2
}
WEIGHTS_GONE: tuple[str, ...] = ("head.train_counts",)


def current_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration, or a part of one, under today's names."""
    return {
        part: _current_part(part, inner) if isinstance(inner, Mapping) else inner
        for part, inner in values.items()
    }


def run_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The whole configuration of a run under today's names, with what later settings were then."""
    found = current_values(values)
    for (part, old), (name, value) in CAME_LATER.items():
        if old in (found.get(part) or {}):
            found[part].setdefault(name, value)
    return found


def current_weights(state: Mapping[str, T]) -> dict[str, T]:
    """A network's weights under today's keys."""
    return {name: tensor for name, tensor in state.items() if name not in WEIGHTS_GONE}


def _current_part(part: str, inner: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for old, value in inner.items():
        place = part, str(old)
        name = SETTINGS.get(place, old)
        if name is not None:
            found[name] = VALUES.get((*place, value), value) if isinstance(value, str) else value
        elif value != HARMLESS[place]:
            raise UserError(f"{part}.{old} is {value!r}.", f"There is no {part}.{old} any more.")
    return found
