"""A trained network applied to whole splits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from oltr.data.augment import Augment
from oltr.data.feed import EvalBatches, Images
from oltr.distributed import rank, sum_over_ranks, world_size
from oltr.evaluation.outputs import Outputs
from oltr.nn.network import Network

_FIELDS = {
    "logits": "logits",
    "features": "direct_feature",
    "embeddings": "meta_embedding",
    "reachability": "reachability",
}


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """The precision that training used: bfloat16 on a GPU unless float32 was asked for."""
    low = precision == "bfloat16" or (precision == "auto" and device.type == "cuda")
    return torch.autocast(device.type, torch.bfloat16, enabled=low)


@torch.inference_mode()
def collect_outputs(
    network: Network,
    images: Images,
    augment: Augment,
    device: torch.device,
    *,
    precision: str = "auto",
    batch_size: int = 256,
    workers: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Outputs:
    """What the network says of every image of a split, in order; processes share the work."""
    network.eval()
    batches = EvalBatches(images, augment, batch_size, device, workers)
    parts: dict[str, list[Tensor]] = {name: [] for name in ("labels", *_FIELDS)}
    for number, (pixels, labels) in enumerate(batches):
        with autocast(device, precision):
            output = network(pixels)
        parts["labels"].append(labels.cpu())
        for name, attribute in _FIELDS.items():
            value = getattr(output, attribute)
            if value is not None:
                parts[name].append(value.float().cpu())
        if progress:
            progress(min((number + 1) * batch_size * world_size(), len(images)), len(images))
    mine = {name: torch.cat(tensors) for name, tensors in parts.items() if tensors}
    return Outputs(**_interleaved(mine))


def _interleaved(mine: dict[str, Tensor]) -> dict[str, Tensor]:
    """The images of all processes in their first order: process r had images r, r + W, r + 2W ..."""
    if world_size() == 1:
        return mine
    every: list[Any] = [None] * world_size()
    dist.all_gather_object(every, mine)
    total = sum(len(part["labels"]) for part in every if part)
    # The first process has an image if any has; one that has none sends nothing.
    whole = {name: tensor.new_empty((total, *tensor.shape[1:])) for name, tensor in every[0].items()}
    for number, part in enumerate(every):
        for name, tensor in part.items():
            whole[name][number :: world_size()] = tensor
    return whole


@torch.no_grad()
def class_means(
    network: Network,
    images: Images,
    augment: Augment,
    device: torch.device,
    num_classes: int,
    *,
    precision: str,
    workers: int = 0,
) -> Tensor:
    """Mean direct feature of each class over the training images, centre-cropped: K×D."""
    was_training = network.training
    network.eval()
    sums: Tensor | None = None
    counts = torch.zeros(num_classes, device=device)
    for pixels, labels in EvalBatches(images, augment, 256, device, workers):
        with autocast(device, precision):
            features = network(pixels).direct_feature.float()
        if sums is None:
            sums = torch.zeros(num_classes, features.shape[1], device=device)
        sums.index_add_(0, labels, features)
        counts += torch.bincount(labels, minlength=num_classes)
    network.train(was_training)
    if sums is None:
        raise ValueError(f"process {rank()} has no training images")
    return sum_over_ranks(sums) / sum_over_ranks(counts).clamp(min=1)[:, None]
