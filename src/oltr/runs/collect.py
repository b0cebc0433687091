"""A trained network applied to a whole split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from oltr.config import DataConfig
from oltr.data.augment import Augment
from oltr.data.image_access import Images, resized
from oltr.distributed import from_first, interleave_over_ranks, rank, world_size
from oltr.nn.network import Network, Output
from oltr.runs.outputs import Outputs
from oltr.training.at_test import forward_at_test
from oltr.training.inference import ViewChange, forward_batches, on_host
from oltr.training.precision import autocast

T = TypeVar("T")


def collect_outputs(
    network: Network,
    images: Images,
    data: DataConfig,
    device: torch.device,
    *,
    precision: str = "auto",
    batch_size: int = 256,
    workers: int = 0,
    progress: Callable[[int, int], None] | None = None,
    change: ViewChange | None = None,
) -> Outputs:
    """Outputs for every image of a split, in order; several processes share the work.

    `change` alters a batch of views before the network sees it.
    """
    options: dict[str, Any] = {"batch_size": batch_size, "workers": workers, "change": change}
    batches = forward_batches(
        network, images, data, device, precision=precision, progress=progress, **options
    )
    mine = len(images.labels[rank() :: world_size()])
    found: dict[str, Tensor] = {}
    done = 0
    for batch in on_host(map(_tensors, batches), device):
        end = done + len(batch["logits"])
        for name, part in batch.items():
            # Filled in place: the parts and their concatenation together would take twice the memory.
            found.setdefault(name, torch.empty(mine, *part.shape[1:]))[done:end] = part
        done = end
    # A process that has no images does not know which parts there are.
    names = from_first(list(found))
    parts = {name: interleave_over_ranks(found.get(name, torch.empty(0))) for name in names}
    return Outputs(labels=torch.from_numpy(images.labels), **parts)


def stream_outputs(
    network: Network,
    batches: Iterable[tuple[T, Tensor | None]],
    data: DataConfig,
    device: torch.device,
    *,
    precision: str = "auto",
    changes: Sequence[ViewChange | None] = (None,),
) -> Iterator[tuple[T, list[Outputs]]]:
    """Outputs for batches of decoded images (uint8 B×S×S×3) as they come, those of each change of the views.

    What comes with a batch is handed on with its outputs; a batch without images has none.
    """
    found = _forward(network, batches, data, device, precision, changes)
    # A CPU has nothing to do meanwhile: whoever waits for the answers need not wait for later batches.
    for name, parts in found if device.type == "cpu" else on_host(found, device):
        yield name, [Outputs(labels=torch.full((len(part["logits"]),), -1), **part) for part in parts]


@torch.inference_mode()  # on while the generator runs, and not in between
def _forward(
    network: Network,
    batches: Iterable[tuple[T, Tensor | None]],
    data: DataConfig,
    device: torch.device,
    precision: str,
    changes: Sequence[ViewChange | None],
) -> Iterator[tuple[T, list[dict[str, Tensor]]]]:
    augment = Augment(data, device)
    network.eval()
    for name, pixels in batches:
        if pixels is None:
            yield name, []
            continue
        images = pixels.to(device, non_blocking=True).permute(0, 3, 1, 2)
        if images.shape[2] > data.stored_size:
            images = resized(images, data.stored_size)
        with autocast(device, precision):
            views = augment.evaluate(images)
            yield name, [_in_memory(network, views, data, change) for change in changes]


def _in_memory(
    network: Network, views: Tensor, data: DataConfig, change: ViewChange | None
) -> dict[str, Tensor]:
    """The parts of the output, in halves where a GPU has too little memory for the batch."""
    try:
        seen = views if change is None else change(network, views)
        return _tensors(forward_at_test(network, seen, data))
    except torch.OutOfMemoryError:
        if len(views) == 1:
            raise
    halves = [_in_memory(network, half, data, change) for half in views.chunk(2)]
    return {name: torch.cat([half[name] for half in halves]) for name in halves[0]}


def _tensors(output: Output) -> dict[str, Tensor]:
    """The parts of a batch's output that are kept, under the names of `Outputs`."""
    found = {
        "logits": output.logits,
        "features": output.direct_feature,
        "embeddings": output.meta_embedding,
        "reachability": output.reachability,
    }
    return {name: part for name, part in found.items() if part is not None}
