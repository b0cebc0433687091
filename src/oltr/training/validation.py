"""What is measured after each epoch."""

from __future__ import annotations

import math

import torch

from oltr.config import RunConfig
from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches, evaluation_batch
from oltr.data.image_access import Images
from oltr.distributed import sum_over_ranks
from oltr.metrics.accuracy import group_means, tally
from oltr.metrics.fmeasure import f_counts, f_from_counts
from oltr.metrics.labels import OPEN
from oltr.metrics.shots import shot_groups
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
    groups = shot_groups(train_counts.cpu().numpy(), config.shots)
    counts = torch.zeros(2, len(groups), dtype=torch.int64, device=device)  # correct and all, per class
    open_counts = torch.zeros(3, dtype=torch.int64, device=device)  # TP, FP, FN
    augment, batch = Augment(config.data, device), evaluation_batch(config.data.seen_size, device)
    network.eval()
    for split in ("val", "open"):
        if split not in images:
            continue
        limit = None if split == "val" else len(images["val"])
        for views, labels in EvalBatches(images[split], augment, batch, device, workers, limit):
            with autocast(device, config.precision):
                probability, predictions = network(views).logits.float().softmax(dim=1).max(dim=1)
            counts += torch.stack(tally(predictions, labels, len(groups)))
            rejected = probability < WATCHED_THRESHOLD
            open_counts += f_counts(predictions.masked_fill(rejected, OPEN), labels)
    correct, total = sum_over_ranks(counts).cpu()
    accuracies = group_means(correct.double() / total, groups)
    measured |= {name: math.nan if value is None else value for name, value in accuracies.items()}
    if "open" in images:
        measured["open_f"] = f_from_counts(sum_over_ranks(open_counts))
    return measured
