"""Several processes: functions that talk through gloo, and the command line as it is started in a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run_processes(work: Callable[[int, int], Any], folder: Path, number: int = 2) -> list[Any]:
    """What `work(rank, world_size)` returns in each process; it must be a function of a module."""
    mp.spawn(_process, args=(work, number, str(folder)), nprocs=number)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(number)]


def _process(rank: int, work: Callable[[int, int], Any], number: int, folder: str) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=number)
    try:
        torch.save(work(rank, number), f"{folder}/{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()


def run_python(
    words: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Python with these words behind it, in a process of its own with one thread."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        timeout=300,
    )
