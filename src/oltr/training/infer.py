"""A trained network applied to whole splits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches
from oltr.data.image_access import Images
from oltr.distributed import rank, sum_over_ranks, world_size
from oltr.nn.network import Network, Output
from oltr.runs.outputs import Outputs
from oltr.training.precision import autocast

_FIELDS = {
    "logits": "logits",
    "features": "direct_feature",
    "embeddings": "meta_embedding",
    "reachability": "reachability",
}

ViewChange = Callable[[Network, Tensor], Tensor]

_ON_THEIR_WAY = 4  # batches whose outputs may still be travelling to the host


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
    change: ViewChange | None = None,
) -> Outputs:
    """What the network says of every image of a split, in order; processes share the work.

    `change` alters a batch of views before the network sees it.
    """
    network.eval()
    batches = EvalBatches(images, augment, batch_size, device, workers)
    collected = _Collected(len(batches.indices), device)
    for number, (views, _) in enumerate(batches):
        with autocast(device, precision):
            collected.add(network(views if change is None else change(network, views)))
        if progress:
            progress(min((number + 1) * batch_size * world_size(), len(images)), len(images))
    mine = {"labels": torch.from_numpy(images.labels[batches.indices]), **collected.rows()}
    return Outputs(**_interleaved(mine))


class _Collected:
    """The outputs of many batches in the host's memory, to which they travel while the device works on.

    The host waits only for a batch that the device finished some batches ago: meanwhile it has enough to do.
    """

    def __init__(self, images: int, device: torch.device):
        self.images, self.device, self.done = images, device, 0
        self.whole: dict[str, Tensor] = {}
        self.travelling: deque[tuple[dict[str, Tensor], torch.cuda.Event | None]] = deque()

    def add(self, output: Output) -> None:
        """Send a batch's outputs on their way."""
        values = {name: getattr(output, attribute) for name, attribute in _FIELDS.items()}
        # Without blocking, a copy from a GPU goes to page-locked memory, which torch keeps for the next ones.
        sent = {name: v.to("cpu", non_blocking=True) for name, v in values.items() if v is not None}
        arrived = None
        if self.device.type == "cuda":
            arrived = torch.cuda.Event()
            arrived.record(torch.cuda.current_stream(self.device))
        self.travelling.append((sent, arrived))
        if len(self.travelling) > _ON_THEIR_WAY:
            self._receive()

    def rows(self) -> dict[str, Tensor]:
        """What was added, once all of it is there."""
        while self.travelling:
            self._receive()
        return self.whole

    def _receive(self) -> None:
        sent, arrived = self.travelling.popleft()
        if arrived is not None:
            arrived.synchronize()
        end = self.done + len(sent["logits"])
        for name, part in sent.items():
            if name not in self.whole:
                self.whole[name] = torch.empty(self.images, *part.shape[1:])
            self.whole[name][self.done : end] = part
        self.done = end


def _interleaved(mine: dict[str, Tensor]) -> dict[str, Tensor]:
    """The images of all processes in their first order: process r had images r, r + W, r + 2W ..."""
    if world_size() == 1:
        return mine
    every: list[Any] = [None] * world_size()
    dist.all_gather_object(every, mine)
    total = sum(len(part["labels"]) for part in every)
    # The first process has an image if any has; one that has none sends nothing but its empty labels.
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
            features = network.embed(pixels).float()
        if sums is None:
            sums = torch.zeros(num_classes, features.shape[1], device=device)
        sums.index_add_(0, labels, features)
        counts += torch.bincount(labels, minlength=num_classes)
    network.train(was_training)
    if sums is None:
        raise ValueError(f"process {rank()} has no training images")
    return sum_over_ranks(sums) / sum_over_ranks(counts).clamp(min=1)[:, None]
