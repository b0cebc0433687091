"""A trained network applied to a whole split."""

from __future__ import annotations

from collections.abc import Callable

import torch

from oltr.config import DataConfig
from oltr.data.augment import Augment
from oltr.data.image_access import Images
from oltr.runs.outputs import Outputs
from oltr.training.infer import ViewChange
from oltr.training.infer import collect_outputs as _collect


def collect_outputs(
    network,
    images: Images,
    data: DataConfig,
    device: torch.device,
    *,
    precision: str = "auto",
    workers: int = 0,
    progress: Callable[[int, int], None] | None = None,
    change: ViewChange | None = None,
) -> Outputs:
    """Placeholder until training's inference is there."""
    return _collect(
        network, images, Augment(data, device), device,
        precision=precision, workers=workers, progress=progress, change=change,
    )  # fmt: skip
