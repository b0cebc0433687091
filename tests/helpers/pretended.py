"""Stand-ins for the processes of a suite: `oltr train` in this process, and programs that pretend to train.

As a program nothing heavy is imported here: `python pretended.py WHAT WORDS ...`.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from pathlib import Path

DYING = 0.125  # momentum of stage 2


class Here:
    """`oltr WORDS` to its end in this process; Ctrl-C there is Ctrl-C here."""

    ended = True

    def __init__(self, words, side_by_side=1):
        from oltr.cli.main import _run
        from oltr.errors import UserError
        from oltr.suites.seeds import one_line

        self.why = None
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                _run([str(word) for word in words])
        except UserError as problem:
            self.why = one_line(str(problem))
        except Exception as problem:
            self.why = one_line(f"{type(problem).__name__}: {problem}")

    def failure(self):
        return self.why

    def interrupt(self):
        pass


def failing(why: str):
    """A process that fails at once."""

    class Failed(Here):
        def __init__(self, words, side_by_side=1):
            self.why = why

    return Failed


def never(words, side_by_side=1):
    """No process is to be started."""
    raise AssertionError(f"trained again: {words}")


def program(what: str) -> tuple[str, ...]:
    """Takes the place of `oltr` in `oltr.suites.processes.PROGRAM`."""
    return sys.executable, __file__, what


def pretend(words: list[str]) -> None:
    """A run that only logs its start and end, and leaves stage-1 weights if it shares none.

    plain's stage 1 lasts until a run has started that shares none, its stage 2 until one has that shares it.
    """
    out, shared, method = (_option(words, name) for name in ("--out", "--stage1-from", "--method"))
    folder = Path(out).parent
    _log(folder, f"begins {Path(out).name}" + (f" from {Path(shared).name}" if shared else ""))
    if f"stage2.momentum={DYING}" in words:
        os.kill(os.getpid(), signal.SIGKILL)
    if method == "plain":
        wait_for(folder / "alone")
    else:
        (folder / ("shares" if shared else "alone")).touch()
    if not shared:
        weights = Path(out) / "checkpoints" / "stage1.safetensors"
        weights.parent.mkdir(parents=True)
        weights.touch()
    if method == "plain":
        wait_for(folder / "shares")
    _log(folder, f"ends {Path(out).name}")


def never_ends(words: list[str]) -> None:
    """Until it is interrupted; the file of its process says so."""
    marked = Path(words[0])
    try:
        marked.write_text(str(os.getpid()))
        wait_for(Path("/nowhere"), 60)
    except KeyboardInterrupt:
        marked.with_suffix(".stopped").touch()
        sys.exit(130)


def starts_another(words: list[str]) -> None:
    """A suite of one process that never ends."""
    from oltr.suites import processes

    processes.PROGRAM = program("never_ends")
    process = processes.CommandProcess(words)
    process.failure()


def complain(words: list[str]) -> None:
    """Say these words on stderr, and fail."""
    print(*words, sep="\n", file=sys.stderr)
    sys.exit(2)


def wait_for(file: Path, seconds: float = 30) -> None:
    """Until the file is there."""
    end = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)


def _option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words else ""


def _log(folder: Path, line: str) -> None:
    with (folder / "log.txt").open("a") as log:
        log.write(f"{line}\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2:])
