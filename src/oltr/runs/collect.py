"""A trained network applied to a whole split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from oltr.config import DataConfig
from oltr.data.image_access import Images
from oltr.distributed import from_first, interleave_over_ranks, rank, world_size
from oltr.nn.network import Network, Output
from oltr.runs.outputs import Outputs
from oltr.training.inference import ViewChange, forward_batches, on_host


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


def _tensors(output: Output) -> dict[str, Tensor]:
    """The parts of a batch's output that are kept, under the names of `Outputs`."""
    found = {
        "logits": output.logits,
        "features": output.direct_feature,
        "embeddings": output.meta_embedding,
        "reachability": output.reachability,
    }
    return {name: part for name, part in found.items() if part is not None}
