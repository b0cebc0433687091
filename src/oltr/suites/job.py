"""What the process of a run is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oltr.config import RunConfig


@dataclass(frozen=True)
class Job:
    """What is to be trained, from what, where to, and beside how many others."""

    config: RunConfig
    source: str
    root: Path | None
    out: Path
    stage1_from: Path | None  # the run whose stage 1 is taken over
    cpu: bool
    at_once: int
