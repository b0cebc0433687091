"""Numbers that no run can be made of, told before any work."""

from __future__ import annotations

import math

from oltr.config import RunConfig, StageConfig, within
from oltr.errors import UserError
from oltr.registry import unknown_name
from oltr.wording import count

# what `frozen` may name
ROLES = ("attention", "auxiliary", "backbone", "classifier", "direct_feature", "memory")
# setting of a stage → smallest and largest value
_STAGE_LIMITS: dict[str, tuple[float, float]] = {
    "epochs": (0, math.inf),
    "batch_size": (1, math.inf),
    "images_per_class": (1, math.inf),
    "views": (1, math.inf),
    "mix_chance": (0, 1),
    "mosaics": (0, math.inf),
    "lr": (0, math.inf),
    "classifier_lr": (0, math.inf),
    "memory_lr": (0, math.inf),
    "layer_decay": (0.01, 1),
    "momentum": (0, 1),
    "weight_decay": (0, math.inf),
    "warmup_epochs": (0, math.inf),
    "ema": (0, math.nextafter(1, 0)),
}


def check_limits(config: RunConfig) -> None:
    """Refuse a configuration whose numbers are out of range."""
    within("seed", config.seed, 0, 2**32 - 1)
    within("data.image_size", config.data.image_size, 8, 2048)
    within("data.stored_size", config.data.stored_size, config.data.image_size, 4096)
    within("data.eval_size", config.data.eval_size or config.data.image_size, 8, 2048)
    within("adjust_tau", config.adjust_tau, -5, 5)
    if config.adjust_tau != 1 and config.adjust != "fixed":
        raise UserError(
            f"adjust_tau is {config.adjust_tau:g}, but adjust is {config.adjust!r}.",
            try_this="--set adjust=fixed, which takes that τ",
        )
    within("distill.share", config.distill.share, 0, 1)
    within("distill.temperature", config.distill.temperature, 1e-3)
    within("data.smallest_crop", config.data.smallest_crop, 0.01, 1)
    for name in ("jitter", "affine", "colour", "erase"):
        within(f"data.{name}", getattr(config.data, name), 0, 1)
    for value in config.data.std:
        within("data.std", value, 1e-6, math.inf)
    stages = range(1, config.num_stages + 1)
    for number in stages:
        stage = config.stage(number)
        for name, (least, most) in _STAGE_LIMITS.items():
            within(f"stage{number}.{name}", getattr(stage, name), least, most)
        for at, factor in stage.lr_milestones.items():
            within(f"An epoch in stage{number}.lr_milestones", at, 0)
            within(f"stage{number}.lr_milestones at epoch {at}", factor, 0)
        if 0 < stage.epochs < stage.warmup_epochs:
            raise UserError(
                f"stage{number}.warmup_epochs is {stage.warmup_epochs}, but the stage has {stage.epochs}.",
                "It would never reach its learning rate.",
                f"--set stage{number}.warmup_epochs={stage.epochs} or fewer",
            )
        if stage.nesterov and not (stage.optimizer == "sgd" and stage.momentum):
            raise UserError(
                f"stage{number}.nesterov is a kind of momentum, and this stage has none.",
                try_this=f"--set stage{number}.nesterov=false",
            )
        if config.train_backbone == "none" and (words := views_in_words(stage)):
            raise UserError(
                f"stage{number} has {words}, and the backbone is frozen.",
                "Its features are computed once, from one view of each image.",
                " ".join(f"--set stage{number}.{off}" for off in ("views=1", "mix=none", "mosaics=0"))
                + ", or --train-backbone all",
            )
        for role in stage.frozen:
            if role not in ROLES:
                raise unknown_name(f"role in stage{number}.frozen", role, ROLES)
    if config.distill.teacher is not None and not any(map(config.has_teacher, stages)):
        raise UserError(
            f"There is a teacher ({config.distill.teacher}), and no stage trains the backbone.",
            "Only where the backbone learns does it learn from a teacher.",
            "--train-backbone all, or no teacher",
        )
    if config.stage2 is not None and not config.stage2.epochs:
        raise UserError(
            "Stage 2 has 0 epochs.",
            "What it adds to the network would stay untrained.",
            "an epoch at least, or --set stage2=null",
        )
    if not sum(config.stage(number).epochs for number in stages):
        raise UserError("With 0 epochs nothing is trained.", try_this="--epochs 30 10")


def views_in_words(stage: StageConfig) -> str:
    """Views, mixing and mosaics of a stage, for a sentence; empty for one view without either."""
    parts = [f"{count(stage.views, 'view')} of each image"] if stage.views > 1 else []
    if stage.mix != "none":
        partner = "an image of the batch" if stage.mix_partner == "batch" else "a class-balanced partner"
        parts.append(f"{stage.mix} with {partner} (chance {stage.mix_chance:g})")
    parts += [f"mosaics of no class (weight {stage.mosaics:g})"] if stage.mosaics else []
    return ", ".join(parts)
