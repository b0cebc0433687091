"""Runs of a suite that are not trained, for tests of who starts when; nothing heavy is imported here."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

DYING = 0.125  # momentum of stage 2


def pretend(job) -> str | None:
    """A run that only says when it begins and ends, and leaves stage-1 weights if it was given none.

    plain's stage 1 lasts until a run has begun that shares none, its stage 2 until one has that shares it.
    """
    folder = job.out.parent
    _note(job, f"begins {job.out.name}" + (f" from {job.stage1_from.name}" if job.stage1_from else ""))
    if job.config.stage2.momentum == DYING:
        os.kill(os.getpid(), signal.SIGKILL)
    if job.config.method == "plain":
        wait_for(folder / "alone")
    else:
        (folder / ("shares" if job.stage1_from else "alone")).touch()
    if job.stage1_from is None:
        weights = job.out / "checkpoints" / "stage1.safetensors"
        weights.parent.mkdir(parents=True)
        weights.touch()
    if job.config.method == "plain":
        wait_for(folder / "shares")
    _note(job, f"ends {job.out.name}")
    return None


def never_ends(marked: str) -> str | None:
    """Until it is interrupted."""
    try:
        Path(marked).touch()
        wait_for(Path("/nowhere"))
    except KeyboardInterrupt:
        Path(marked).with_suffix(".stopped").touch()
        raise
    return None


def say_much(letters: int) -> str:
    """More than a pipe holds, if there are many letters."""
    return "x" * letters


def wait_for(file: Path, seconds: float = 30) -> None:
    """Until the file is there."""
    end = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)


def _note(job, line: str) -> None:
    with (job.out.parent / "log.txt").open("a") as log:
        log.write(f"{line}\n")
