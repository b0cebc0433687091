"""`oltr serve` in processes of its own, many of them forked from one that has imported everything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# For each line on standard input, forks `oltr serve WORDS`; tells its process and address, or an empty one.
FORKING = """
import json, os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
import numpy, pandas, PIL.Image, safetensors.torch, timm, torch, uvicorn
from oltr.cli import serve as _
from oltr.cli.main import _guarded
from oltr.openworld import discover
from oltr.runs import train_run, trained_run
from oltr.serve import run_server, service

for line in sys.stdin:
    read, told = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(read)
        os.dup2(told, 1)
        os.close(told)
        os._exit(_guarded(["serve", *json.loads(line)]))
    os.close(told)
    with os.fdopen(read) as answer:
        print(json.dumps([child, answer.readline().strip()]), flush=True)
os._exit(0)  # quicker than torch takes its leave
"""


@dataclass(frozen=True)
class Served:
    """A server that listens."""

    process: int
    address: str

    def kill(self) -> None:
        """As the power would."""
        os.kill(self.process, signal.SIGKILL)


Serve = Callable[..., AbstractContextManager[Served]]


@contextmanager
def serving_processes() -> Iterator[Serve]:
    """`serve(run, *words)` is a server for a block, which may kill it before its end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, "-c", FORKING], env=environment, **pipes) as process:

        @contextmanager
        def serve(run: Path, *words: str) -> Iterator[Served]:
            process.stdin.write(json.dumps([str(run), "--port", "0", *words]) + "\n")
            process.stdin.flush()
            number, address = json.loads(process.stdout.readline())
            assert address, "the server did not start"
            try:
                yield Served(number, address)
            finally:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)

        yield serve
        process.stdin.close()
