"""A network applied to whole splits: outputs, direct features, class means."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from oltr.config import DataConfig
from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches
from oltr.data.image_access import Images
from oltr.distributed import interleave_over_ranks, rank, sum_over_ranks, world_size
from oltr.nn.network import Network, Output
from oltr.training.at_test import embed_at_test, forward_at_test
from oltr.training.precision import autocast

T = TypeVar("T")
Progress = Callable[[int, int], None]
ViewChange = Callable[[Network, Tensor], Tensor]

_IN_FLIGHT = 4  # batches whose copies to the host may be under way


def forward_batches(
    network: Network,
    images: Images,
    data: DataConfig,
    device: torch.device,
    *,
    precision: str,
    batch_size: int = 256,
    workers: int = 0,
    progress: Progress | None = None,
    change: ViewChange | None = None,
) -> Iterator[Output]:
    """The network's output for each batch of centre crops, in order; process r of W has images r, r + W ...

    `change` alters a batch of views before the network sees it.
    """

    def outputs(views: Tensor) -> Output:
        return forward_at_test(network, views if change is None else change(network, views), data)

    batches = EvalBatches(images, Augment(data, device), batch_size, device, workers)
    return _apply(outputs, network, batches, precision, progress)


def embed_images(
    network: Network,
    images: Images,
    data: DataConfig,
    device: torch.device,
    *,
    precision: str,
    batch_size: int = 256,
    workers: int = 0,
    progress: Progress | None = None,
    embed: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Features (N×D float32) and labels (N) of all images in order, on the CPU of every process.

    They are direct features unless `embed` gives others.
    """
    embed = embed or partial(embed_at_test, network, data=data)
    batches = EvalBatches(images, Augment(data, device), batch_size, device, workers)
    features = list(on_host(_apply(embed, network, batches, precision, progress), device))
    mine = torch.cat(features).float() if features else torch.empty(0)
    return interleave_over_ranks(mine), torch.from_numpy(images.labels)


@torch.inference_mode()  # on while the generator runs, and not in between
def _apply(
    function: Callable[[Tensor], T],
    network: Network,
    batches: EvalBatches,
    precision: str,
    progress: Progress | None,
) -> Iterator[T]:
    """`function` of each batch of views, the network in evaluation mode."""
    network.eval()
    total = len(batches.images)
    for number, (views, _) in enumerate(batches, start=1):
        with autocast(batches.device, precision):
            result = function(views)
        if progress:
            progress(min(number * batches.size * world_size(), total), total)
        yield result


def on_host(batches: Iterable[T], device: torch.device) -> Iterator[T]:
    """Each batch (a tensor, or a tuple or dict of them) in the host's memory, a few behind the device.

    The host waits only for a batch that the device finished some batches ago: meanwhile both have work.
    """
    under_way: deque[tuple[T, torch.cuda.Event | None]] = deque()
    for batch in batches:
        # Without blocking, a copy from a GPU goes to page-locked memory, which torch keeps for the next ones.
        copied = tree_map_only(Tensor, lambda tensor: tensor.to("cpu", non_blocking=True), batch)
        event = torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None
        under_way.append((copied, event))
        if len(under_way) > _IN_FLIGHT:
            yield _arrived(*under_way.popleft())
    while under_way:
        yield _arrived(*under_way.popleft())


def _arrived(copied: T, event: torch.cuda.Event | None) -> T:
    if event is not None:
        event.synchronize()
    return copied


@torch.no_grad()
def class_means(
    network: Network,
    images: Images,
    data: DataConfig,
    device: torch.device,
    num_classes: int,
    *,
    precision: str,
    workers: int = 0,
) -> Tensor:
    """Mean direct feature of each class over the images, centre-cropped: K×D."""
    was_training = network.training
    network.eval()
    sums: Tensor | None = None
    counts = torch.zeros(num_classes, device=device)
    for views, labels in EvalBatches(images, Augment(data, device), 256, device, workers):
        with autocast(device, precision):
            features = network.embed(views).float()
        if sums is None:
            sums = torch.zeros(num_classes, features.shape[1], device=device)
        sums.index_add_(0, labels, features)
        counts += torch.bincount(labels, minlength=num_classes)
    network.train(was_training)
    if sums is None:
        raise ValueError(f"process {rank()} has no training images")
    return sum_over_ranks(sums) / sum_over_ranks(counts).clamp(min=1)[:, None]
