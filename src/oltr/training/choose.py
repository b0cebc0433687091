"""What suits somebody's photos: frozen or fine-tuned pretrained weights, or training from scratch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oltr.errors import UserError
from oltr.packaged_weights import KNOWN, default_weights, install_command, packaged
from oltr.recipes import load_recipe
from oltr.training.configure import SCRATCH

TrainBackbone = Literal["all", "last", "none"]

PHOTOS, FROZEN, FINE_TUNED = "photos", "photos-frozen", "photos-finetuned"
FEW = 500  # training images; fewer are not fine-tuned on


@dataclass(frozen=True)
class Choice:
    """The recipe, method, backbone and weights of a run, and why."""

    recipe: str
    method: str
    backbone: str | None
    weights: str | None
    train_backbone: TrainBackbone | None
    reason: str = ""


def choose(
    recipe: str,
    method: str | None,
    backbone: str | None,
    weights: str | None,
    train_backbone: TrainBackbone | None,
    *,
    train_images: int,
    gpu: bool,
) -> Choice:
    """The recipe `photos` becomes one of its three kinds; what the user says stays, any other recipe too."""
    wanted = weights
    if recipe == PHOTOS and weights is None:
        weights = _at_hand(backbone)
    if recipe == PHOTOS and weights in (None, SCRATCH) and train_backbone in ("none", "last"):
        raise UserError(
            f"--train-backbone {train_backbone} needs pretrained weights.",
            "Without them most of the network would stay random.",
            "--weights NAME (`oltr weights`)",
        )
    reason = ""
    if recipe == PHOTOS and weights not in (None, SCRATCH):
        tunable = gpu and train_images >= FEW and method in (None, "logit-adjusted")
        frozen = train_backbone == "none" or (train_backbone is None and not tunable)
        recipe = FROZEN if frozen else FINE_TUNED
        why = "" if train_backbone else f": {_why(gpu, train_images, method)}"
        named = f"pretrained weights {weights}" if wanted is None else "pretrained weights"
        reason = f"{named}, {'frozen' if frozen else 'fine-tuned'}{why}"
    elif recipe == PHOTOS and wanted is None:
        reason = (
            "from scratch, for there are no pretrained weights"
            + (f" of {backbone}" if backbone else "")
            + f"; with them a model from photos is far better: {install_command(KNOWN[0])}"
        )
    elif recipe == PHOTOS:
        reason = "from scratch"
    return Choice(recipe, method or load_recipe(recipe).method, backbone, weights, train_backbone, reason)


def _at_hand(backbone: str | None) -> str | None:
    """Installed weights, for that backbone if one is given."""
    if backbone is None:
        found = default_weights()
    else:
        found = next((each for each in packaged() if each.backbone == backbone), None)
    return found.name if found else None


def _why(gpu: bool, train_images: int, method: str | None) -> str:
    if not gpu:
        return "no GPU is used"
    if train_images < FEW:
        return f"{train_images:,} training images are few"
    return "a GPU and enough images" if method in (None, "logit-adjusted") else f"{method} works on features"
