"""Sums and rows over the processes of a distributed run; with one process, the tensor itself."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this one is."""
    return dist.get_rank() if world_size() > 1 else 0


def wait_for_all() -> None:
    """Go on when every process has come this far."""
    if world_size() > 1:
        dist.barrier()


def leave() -> None:
    """End the exchange: its threads, left to the interpreter's end, now and then crash a process there."""
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
