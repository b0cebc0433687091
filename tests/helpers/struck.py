"""Commands that kill themselves at a chosen call, many of them from one process that has imported all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

NEVER = 10**9

# Imports once, then for each line on standard input forks a command that kills itself at the n-th call of any
# function in the files named. Answers with its exit status and the calls it made.
STRUCK = """
import json, os, signal, sys
import timm
from oltr import Recognizer
from oltr.cli import predict as _
from oltr.cli.main import _guarded
from oltr.runs.predictions import judge
judge.MOST = {"cpu": 4, "cuda": 4}
places, number = sys.argv[1:], 0

def command(at, words):
    def struck(frame, event, argument):
        global number
        if any(place in frame.f_code.co_filename for place in places):
            number += 1
            if number == at:
                os.kill(os.getpid(), signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.setprofile(struck)
    code = _guarded(words)
    sys.setprofile(None)
    os.write(told, str(number).encode())
    os._exit(code)

for line in sys.stdin:
    read, told = os.pipe()
    child = os.fork()
    if child == 0:
        command(*json.loads(line))
    os.close(told)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, int(os.read(read, 99) or 0)]), flush=True)
    os.close(read)
"""


@contextmanager
def striking(places: Sequence[str]) -> Iterator[Callable[[Sequence[str], int], tuple[int, int]]]:
    """`strike(words, at)`: exit code and number of calls, in files of those places, of a command struck."""
    words = [sys.executable, "-c", STRUCK, *places]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, env=os.environ | {"OMP_NUM_THREADS": "1"}, **pipes) as process:

        def strike(told: Sequence[str], at: int = NEVER) -> tuple[int, int]:
            process.stdin.write(json.dumps([at, list(told)]) + "\n")
            process.stdin.flush()
            code, calls = json.loads(process.stdout.readline())
            return code, calls

        yield strike
        process.stdin.close()
