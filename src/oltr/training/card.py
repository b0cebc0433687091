"""What the card of pretrained weights says of their images, put into a run's configuration."""

from __future__ import annotations

import dataclasses
from typing import Any

from oltr.config import RunConfig
from oltr.recipes import load_recipe

FROZEN, TUNED = 9 / 7, 8 / 7  # times the size that the weights were trained at, as in the recipes
STEP = 32  # of the sizes, as most networks reduce the image by it


def with_card(config: RunConfig) -> RunConfig:
    """Mean, deviation, interpolation and size of the backbone's own card, where the recipe leaves them open.

    A recipe that names its weights has the size that suits them; a backbone given in their place has its own.
    A network of a fixed size is evaluated at the size it is trained at, with weights or without.
    """
    from oltr.nn.backbone import backbone_card

    recipe = load_recipe(config.recipe).run
    told = recipe.get("data", {})
    follows_card = config.weights is not None and "mean" not in told
    if not follows_card and config.data.eval_size is None:
        return config
    if (card := backbone_card(config.backbone)) is None:
        return config
    if card.fixed_size:
        config = dataclasses.replace(config, data=dataclasses.replace(config.data, eval_size=None))
    if not follows_card:
        return config
    changes: dict[str, Any] = {"mean": card.mean, "std": card.std}
    if "train_backbone" in recipe or told.get("resize") == "crop":  # the recipes for photos
        if card.interpolation in ("bilinear", "bicubic"):
            changes["interpolation"] = card.interpolation
        if config.backbone != recipe.get("backbone"):
            larger = FROZEN if config.train_backbone == "none" else TUNED
            size = card.input_size if card.fixed_size else round(card.input_size * larger / STEP) * STEP
            changes |= {"image_size": size, "stored_size": size, "eval_size": None}
    return dataclasses.replace(config, data=dataclasses.replace(config.data, **changes))
