"""The device that networks run on; a CPU's memory is made ready for them."""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache

import torch

# Parameters of glibc's mallopt (malloc.h) and the environment variables that set them.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
SET_BY_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


def network_device(*, cpu: bool = False, gpu: int | None = None) -> torch.device:
    """The GPU (the current one, or number `gpu`); the CPU where there is none or `cpu` asks for it."""
    if torch.cuda.is_available() and not cpu:
        return torch.device("cuda" if gpu is None else f"cuda:{gpu}")
    keep_freed_memory()
    return torch.device("cpu")


@cache
def keep_freed_memory() -> bool:
    """Let this process reuse the memory of freed tensors; whether that could be set.

    By default glibc returns large blocks to the system when they are freed, and the system clears them again,
    page by page, for the next layer's output: up to half of the time of a network on a CPU. The price is that
    memory stays at its peak until the process ends. What the environment sets of malloc is left as it is.
    """
    if platform.libc_ver()[0] != "glibc" or any(name in os.environ for name in SET_BY_USER):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all(
        (
            mallopt(TRIM_THRESHOLD, -1),  # never
            mallopt(MMAP_THRESHOLD, 2**30),  # bytes; larger blocks are returned as before
            mallopt(ARENA_MAX, 1),  # other threads' own arenas would return theirs
        )
    )
