"""Sums and rows over the processes of a distributed run; with one process, the tensor itself."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")


def world_size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this one is."""
    return dist.get_rank() if world_size() > 1 else 0


def wait_for_all() -> None:
    """Return when every process has called this."""
    if world_size() > 1:
        dist.barrier()


def leave() -> None:
    """Close the process group: at the interpreter's end its threads sometimes crash a process."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def copy_from_first(module: torch.nn.Module) -> None:
    """Give every process the first one's parameters and buffers."""
    if world_size() == 1:
        return
    for tensor in module.state_dict().values():
        dist.broadcast(tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor, 0)


def sum_over_ranks(tensor: Tensor) -> Tensor:
    """Σ over processes of a detached tensor, the same shape and the same on every process."""
    if world_size() == 1:
        return tensor
    total = tensor.detach().clone()
    dist.all_reduce(total)
    return total


def gather_over_ranks(tensor: Tensor) -> Tensor:
    """The detached rows of all processes, each of which brings equally many, one after another."""
    if world_size() == 1:
        return tensor.detach()
    parts = [torch.empty_like(tensor) for _ in range(world_size())]
    dist.all_gather(parts, tensor.detach().contiguous())
    return torch.cat(parts)


def from_first(value: T) -> T:
    """Process 0's value, on every process."""
    if world_size() == 1:
        return value
    values: list[Any] = [value]
    dist.broadcast_object_list(values, 0)
    return values[0]


def interleave_over_ranks(rows: Tensor) -> Tensor:
    """All rows of a tensor of which process r of W has rows r, r + W, r + 2W ..., on every process."""
    if world_size() == 1:
        return rows
    parts: list[Any] = [None] * world_size()
    dist.all_gather_object(parts, rows)
    # The first process has a row if any has; one that has none may not know their shape.
    whole = parts[0].new_empty((sum(map(len, parts)), *parts[0].shape[1:]))
    for number, part in enumerate(parts):
        if len(part):
            whole[number :: world_size()] = part
    return whole
