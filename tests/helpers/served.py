"""`oltr serve` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(run: Path, token: str = "") -> Iterator[str]:
    """The address of a run's service, without a slash at its end."""
    words = [sys.executable, "-m", "oltr.cli.main", "serve", str(run), "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OLTR_TOKEN": token}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()  # it is said when requests are answered
            assert address.startswith("http://127.0.0.1:"), "the service did not start"
            yield address.rstrip("/")
        finally:
            process.terminate()
