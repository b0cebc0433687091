"""`oltr` commands side by side, each in a process of its own that ends with this one."""

from __future__ import annotations

import codecs
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedReader
from typing import TypeVar

from oltr.console import console
from oltr.suites.seeds import one_line

PROGRAM = (sys.executable, "-P", "-m", "oltr.cli.main")
POLL = 0.2  # seconds between two looks at the processes
STOP = 20.0  # seconds after which a process that was interrupted is interrupted again
KEPT = 20_000  # characters of stderr
T = TypeVar("T")

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FAULT = re.compile(r"error: |[\w.]+(Error|Exception)\b")  # how the line that says what failed begins
_PR_SET_PDEATHSIG = 1
# Looked up here: between fork and exec as little as possible should happen.
_prctl = getattr(ctypes.PyDLL(None), "prctl", None) if sys.platform == "linux" else None


class CommandProcess:
    """`oltr WORDS` in a new process; its stderr is kept, and shown unless others run beside it.

    Ctrl-C in a terminal reaches only us, and is passed on once. If we are killed, it is interrupted (Linux).
    """

    def __init__(self, words: Sequence[str], side_by_side: int = 1):
        self.said, self.quiet = "", side_by_side > 1
        self.process = subprocess.Popen(
            [*PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the report of a single run
            stderr=subprocess.PIPE,
            env=_environment(side_by_side),
            process_group=0,
            preexec_fn=_end_with(os.getpid()),
        )
        assert isinstance(self.process.stderr, BufferedReader)
        self.reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self.reader.start()

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def failure(self) -> str | None:
        """Why it failed, or None; waits for its end."""
        code = self.process.wait()
        self.reader.join(timeout=5)  # a worker that outlives the process may hold the stream open
        if not self.quiet:
            _clear_bar()
        elif code and "Traceback" in self.said:
            console.say(self.said)  # a fault of ours: the reason says what, this says where
        return failure_reason(code, self.said)

    def interrupt(self) -> None:
        """Stop it as Ctrl-C does, and wait for its end."""
        shown, self.quiet = not self.quiet, True  # our own message is enough
        if shown:
            _clear_bar()
        while not self.ended:
            self.process.send_signal(signal.SIGINT)  # finished epochs are kept
            try:
                self.process.wait(STOP)
            except subprocess.TimeoutExpired:
                continue  # an interrupt inside a callback is lost

    def _read(self, stream: BufferedReader) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := stream.read1(65536):
            text = decoder.decode(data)
            self.said = (self.said + text)[-KEPT:]
            if not self.quiet:
                try:
                    sys.stderr.write(text)
                    sys.stderr.flush()
                except (OSError, ValueError):  # nobody reads ours; the process must not block
                    self.quiet = True


def side_by_side(
    items: Iterable[T], jobs: int, start: Callable[[T, list[T]], CommandProcess | None]
) -> Iterator[tuple[T, str | None]]:
    """Each item as its process ends, with why it failed; at most `jobs` processes at a time.

    `start(item, running)` starts a process, or returns None while the item must wait for a running one.
    However the iteration ends, no process is left.
    """
    waiting, running = list(items), dict[T, CommandProcess]()
    try:
        while waiting or running:
            for item in list(waiting):
                if len(running) < jobs and (process := start(item, list(running))) is not None:
                    waiting.remove(item)
                    running[item] = process
            ended = [item for item, process in running.items() if process.ended]
            for item in ended:
                yield item, running.pop(item).failure()
            if not ended:
                time.sleep(POLL)
    finally:
        stopping = [threading.Thread(target=process.interrupt, daemon=True) for process in running.values()]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()


def failure_reason(code: int, said: str) -> str | None:
    """Why a process failed, in one line, by its exit code and stderr; None if it did not."""
    if code == 0:
        return None
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}; was there enough memory?"
    lines = [line for line in _CONTROL.sub("", said).splitlines() if line.strip()]
    faults = [number for number, line in enumerate(lines) if _FAULT.match(line)]
    words = " ".join(lines[faults[-1] :] if faults else lines[-3:]).removeprefix("error: ")
    return one_line(words or f"its process ended with exit code {code}")


def _clear_bar() -> None:
    """Erase a progress bar that was cut off, and show the cursor that it had hidden."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K\x1b[?25h")


def _environment(side_by_side: int) -> dict[str, str]:
    """Ours, with an equal share of the cores, or as wide a terminal as ours; what the user has set stays."""
    changes = {}
    if side_by_side > 1:
        changes["OMP_NUM_THREADS"] = str(max((os.cpu_count() or 1) // side_by_side, 1))
    elif sys.stderr.isatty():
        changes |= {"TTY_COMPATIBLE": "1", "COLUMNS": str(shutil.get_terminal_size().columns)}
    return {**changes, **os.environ}


def _end_with(parent: int) -> Callable[[], None]:
    """What a new process does before its command: it is to be interrupted when `parent` ends."""

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where we were started by nohup
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
            if os.getppid() != parent:
                os._exit(1)

    return prepare
