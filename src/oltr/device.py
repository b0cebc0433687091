"""The device that tensors are computed on; on a CPU the memory of freed ones is reused."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache

import torch

# Parameters of glibc's mallopt (malloc.h), and the environment variables that set them.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -3, -4, -8
MALLOC_VARIABLES = (
    *("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_ARENA_MAX"),
    "GLIBC_TUNABLES",
)


def best_device(*, cpu: bool = False, gpu: int | None = None) -> torch.device:
    """The GPU (the current one, or number `gpu`); the CPU where there is none or `cpu` asks for it."""
    if not cpu and torch.cuda.is_available():
        return torch.device("cuda" if gpu is None else f"cuda:{gpu}")
    reuse_freed_memory()
    return torch.device("cpu")


@cache
def reuse_freed_memory() -> bool:
    """Keep the memory of freed tensors in this process for the next ones; True if malloc could be set so.

    By default glibc returns large blocks to the system when they are freed, and the system clears them again,
    page by page, for the next layer's output: up to half of the time of a network on a CPU. The price is that
    memory stays at its peak until the process ends. What the environment sets of malloc is left as it is.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    if any(name in os.environ for name in MALLOC_VARIABLES):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    # Blocks below 1 GiB come from the heap; all blocks where an older glibc does not take this threshold.
    in_heap = mallopt(MMAP_THRESHOLD, 2**30) or mallopt(MMAP_MAX, 0)
    # The heap never shrinks, and all threads share it: arenas of their own would shrink.
    return bool(in_heap and mallopt(TRIM_THRESHOLD, -1) and mallopt(ARENA_MAX, 1))
