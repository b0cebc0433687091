"""Numbers that no run can be made of, told before any work."""

from __future__ import annotations

import math

from oltr.config import RunConfig, within
from oltr.errors import UserError
from oltr.registry import unknown_name

ROLES = ("attention", "backbone", "classifier", "direct_feature", "memory")  # what `frozen` may name
# setting of a stage → smallest and largest value
_STAGE_LIMITS: dict[str, tuple[float, float]] = {
    "epochs": (0, math.inf),
    "batch_size": (1, math.inf),
    "images_per_class": (1, math.inf),
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
    within("data.eval_size", config.data.seen_size, 8, 2048)
    within("adjust_tau", config.adjust_tau, -5, 5)
    within("data.smallest_crop", config.data.smallest_crop, 0.01, 1)
    within("data.jitter", config.data.jitter, 0, 1)
    for value in config.data.std:
        within("data.std", value, 1e-6, math.inf)
    for number in range(1, config.num_stages + 1):
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
        for role in stage.frozen:
            if role not in ROLES:
                raise unknown_name(f"role in stage{number}.frozen", role, ROLES)
    if config.stage2 is not None and not config.stage2.epochs:
        raise UserError(
            "Stage 2 has 0 epochs.",
            "What it adds to the network would stay untrained.",
            "an epoch at least, or --set stage2=null",
        )
    if not sum(config.stage(number).epochs for number in range(1, config.num_stages + 1)):
        raise UserError("With 0 epochs nothing is trained.", try_this="--epochs 30 10")
