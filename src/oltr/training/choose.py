"""What suits somebody's photos: frozen or fine-tuned pretrained weights, or training from scratch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oltr.config import RunConfig
from oltr.methods import METHODS
from oltr.packaged_weights import KNOWN, default_weights, install_command, network_name, packaged
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
    reason = ""
    if recipe == PHOTOS and weights not in (None, SCRATCH):
        own = method in (None, "logit-adjusted")
        must = method is not None and not METHODS[method].works_frozen
        tuned = must or (gpu and train_images >= FEW and own)
        if train_backbone is not None:
            tuned = train_backbone != "none"
        recipe = FINE_TUNED if tuned else FROZEN
        named = "timm's pretrained weights" if weights == "pretrained" else f"pretrained weights {weights}"
        why = "" if train_backbone else f": {_why(gpu, train_images, method)}"
        reason = f"{named}, {'fine-tuned' if tuned else 'frozen'}{why}"
    elif recipe == PHOTOS and wanted is None:
        reason = f"from scratch; {_better(backbone)}"
    elif recipe == PHOTOS:
        reason = "from scratch"
    return Choice(recipe, method or load_recipe(recipe).method, backbone, weights, train_backbone, reason)


def choice_of(config: RunConfig, choice: Choice) -> Choice:
    """What was chosen when a run began, whatever the machine that goes on with it has."""
    return Choice(
        config.recipe,
        config.method,
        config.backbone,
        config.weights or SCRATCH,
        config.train_backbone,
        choice.reason and "as it began",
    )


def _better(backbone: str | None) -> str:
    """How to get pretrained weights, where none are at hand."""
    if backbone is None:
        return f"pretrained weights do far better: {install_command(KNOWN[0])}"
    found = default_weights()
    other = f", or without --backbone {found.name} is used" if found else ""
    return f"pretrained weights do far better: --weights FILE or pretrained (downloads){other}"


def _at_hand(backbone: str | None) -> str | None:
    """Installed weights, for that backbone if one is given."""
    if backbone is None:
        found = default_weights()
    else:
        found = next((each for each in packaged() if each.backbone == network_name(backbone)), None)
    return found.name if found else None


def _why(gpu: bool, train_images: int, method: str | None) -> str:
    if method is not None and not METHODS[method].works_frozen:
        return f"{method} needs a backbone that learns"
    if not gpu:
        return "no GPU is used"
    if train_images < FEW:
        return f"{train_images:,} training images are few"
    return "a GPU and enough images" if method in (None, "logit-adjusted") else f"{method} works on features"
