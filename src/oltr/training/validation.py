"""What is measured after each epoch."""

from __future__ import annotations

import torch

from oltr.config import RunConfig
from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches, evaluation_batch
from oltr.data.image_access import Images
from oltr.metrics.running import OpenF, ShotAccuracy
from oltr.nn.network import Network
from oltr.training.precision import autocast

WATCHED_THRESHOLD = 0.1  # the paper's; for the open F after each epoch


@torch.inference_mode()
def validate(
    network: Network,
    images: dict[str, Images],
    config: RunConfig,
    train_counts: torch.Tensor,
    device: torch.device,
    workers: int,
) -> dict[str, float | None]:
    """many, medium, few and overall accuracy on the validation images, open F on as many open ones too.

    None where there are no such images; nothing is chosen by the open ones.
    """
    measured: dict[str, float | None] = dict.fromkeys(("many", "medium", "few", "overall", "open_f"))
    if "val" not in images:
        return measured
    shot_accuracy = ShotAccuracy(train_counts.cpu().numpy(), config.shots).to(device)
    open_f = OpenF(WATCHED_THRESHOLD).to(device)
    augment, batch = Augment(config.data, device), evaluation_batch(config.data.image_size, device)
    network.eval()
    for split in ("val", "open"):
        if split not in images:
            continue
        limit = None if split == "val" else len(images["val"])
        for views, labels in EvalBatches(images[split], augment, batch, device, workers, limit):
            with autocast(device, config.precision):
                logits = network(views).logits
            if split == "val":
                shot_accuracy.update(logits, labels)
            open_f.update(logits, labels)
    measured |= {name: float(value) for name, value in shot_accuracy.compute().items()}
    if "open" in images:
        measured["open_f"] = float(open_f.compute())
    return measured
