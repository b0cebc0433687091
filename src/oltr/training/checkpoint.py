"""The state to resume from, written while training goes on."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from oltr.files import atomic_write


class CheckpointWriter:
    """Writes one thing after another in a thread: a short epoch lasts not much longer than its writing."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self.under_way: Future[None] | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin to write, once what was begun before is written; its failure is raised here."""
        self.wait()
        self.under_way = self.thread.submit(work)

    def wait(self) -> None:
        """Until all is written; a failure to do so is raised."""
        under_way, self.under_way = self.under_way, None
        if under_way is not None:
            under_way.result()


class Snapshot:
    """A nested state with a copy of each tensor in the host's memory, which training no longer changes.

    The copies of a GPU's tensors are still on their way, ahead of the work that changes them.
    """

    def __init__(self, state: Any):
        self.copies = tree_map_only(
            Tensor, lambda t: t.detach().to("cpu", non_blocking=True, copy=True), state
        )
        self.arrived = torch.cuda.Event() if torch.cuda.is_initialized() else None
        if self.arrived is not None:
            self.arrived.record()

    def state(self) -> Any:
        """The copies, once all are there."""
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.copies


def write_state(snapshot: Snapshot, path: Path) -> None:
    """A snapshot as a file, whole or not at all."""
    content = io.BytesIO()
    torch.save(snapshot.state(), content)
    with atomic_write(path) as part:
        part.write_bytes(content.getbuffer())
