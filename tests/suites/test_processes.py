"""Commands in processes of their own: how they end, fail and are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from oltr.suites import processes
from oltr.suites.processes import CommandProcess, failure_reason, side_by_side
from oltr.suites.seeds import one_line
from tests.helpers import pretended

TRACEBACK = """going well
Traceback (most recent call last):
  File "x.py", line 3, in f
    raise ValueError("one
ValueError: one
two
"""


@pytest.fixture
def pretend(monkeypatch):
    """`pretend(what)`: this takes the place of `oltr`."""
    return lambda what: monkeypatch.setattr(processes, "PROGRAM", pretended.program(what))


@pytest.mark.parametrize(
    ("code", "said", "reason"),
    [
        (0, "error: no", None),
        (2, "epoch 1\nerror: No room.\nIt is full.\nTry: another\n", "No room. It is full. Try: another"),
        (2, "error: first\nwarning: x\nerror: last\n", "last"),
        (2, "\x1b[33mwarning\x1b[0m\n\x1b[2K\x1b[1Aerror: No room.\n", "No room."),
        (1, TRACEBACK, "ValueError: one two"),
        (1, "torch.OutOfMemoryError: CUDA out of memory.\n", "torch.OutOfMemoryError: CUDA out of memory."),
        (3, "a\nb\n\nc\nd\n", "b c d"),
        (3, "", "its process ended with exit code 3"),
        (-9, "error: no", "its process was ended by SIGKILL; was there enough memory?"),
    ],
)  # fmt: skip
def test_the_reason_of_a_failure(code, said, reason):
    assert failure_reason(code, said) == reason


def test_an_error_of_the_command_line_is_the_reason(capsys):
    assert CommandProcess(["trian", "data"]).failure() == (
        "There is no command called 'trian'. did you mean train?"
    )
    assert "error: There is no command" in capsys.readouterr().err


def test_a_failure_fits_into_a_line_of_the_table():
    said = one_line("word\n" * 9999)
    assert said.startswith("word word") and "\n" not in said and len(said) <= 400 and said.endswith("…")
    assert one_line("word\nword") == "word word"


def test_stderr_is_shown_unless_others_run_beside_it(pretend, capsys):
    pretend("complain")
    assert CommandProcess(["snow ❄", "error: No room."]).failure() == "No room."
    assert capsys.readouterr().err == "snow ❄\nerror: No room.\n"
    assert CommandProcess(["snow ❄", "error: No room."], side_by_side=2).failure() == "No room."
    assert capsys.readouterr().err == ""
    # A fault of ours is shown in any case: somebody has to find it.
    assert CommandProcess(TRACEBACK.splitlines(), side_by_side=2).failure() == "ValueError: one two"
    assert "line 3, in f" in capsys.readouterr().err


def test_much_on_stderr_does_not_block(pretend):
    pretend("complain")
    found = []
    going = side_by_side([1], 1, lambda *_: CommandProcess(["x" * 100_000] * 5, side_by_side=2))
    reading = threading.Thread(target=lambda: found.extend(going), daemon=True)
    reading.start()
    reading.join(30)
    assert len(found) == 1 and found[0][1].endswith("…")


def test_an_equal_share_of_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert processes._environment(3)["OMP_NUM_THREADS"] == "2"
    assert "OMP_NUM_THREADS" not in processes._environment(1)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert processes._environment(3)["OMP_NUM_THREADS"] == "5"


def test_progress_bars_are_drawn_if_ours_would_be(monkeypatch):
    assert "TTY_COMPATIBLE" not in processes._environment(1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "97")
    shown = processes._environment(1)
    assert shown["TTY_COMPATIBLE"] == "1" and shown["COLUMNS"] == "97"
    assert "TTY_COMPATIBLE" not in processes._environment(2)


def test_an_interruption_ends_all_processes(pretend, tmp_path):
    pretend("never_ends")
    marks = [tmp_path / name for name in ("a", "b", "no folder/c")]
    going = side_by_side(marks, 3, lambda mark, _: CommandProcess([str(mark)], side_by_side=2))
    failed, why = next(going)
    assert failed == marks[2] and why.startswith("FileNotFoundError")
    for mark in marks[:2]:
        pretended.wait_for(mark)
    going.close()
    assert all(mark.with_suffix(".stopped").exists() for mark in marks[:2])


def test_at_most_so_many_at_a_time(tmp_path):
    seen = []

    def start(item, running):
        seen.append(len(running))
        return pretended.failing("x")([])

    assert list(side_by_side(range(5), 2, start)) == [(number, "x") for number in range(5)]
    assert max(seen) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="prctl")
@pytest.mark.parametrize("ignored", [False, True])  # as under nohup
def test_a_process_ends_when_its_starter_is_killed(tmp_path, ignored):
    marked = tmp_path / "a"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None
    starter = subprocess.Popen([*pretended.program("starts_another"), str(marked)])
    if ignored:
        signal.signal(signal.SIGINT, before)
    pretended.wait_for(marked)
    time.sleep(0.1)
    starter.kill()
    starter.wait()
    pretended.wait_for(marked.with_suffix(".stopped"), 10)
    assert marked.with_suffix(".stopped").exists()
