"""One process speaks and writes, however the processes were started."""

from __future__ import annotations

import io

import pytest
from rich.console import Console as Screen

from oltr.console import Console, process_rank


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({}, True),
        ({"RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"RANK": "3", "LOCAL_RANK": "0"}, False),
        ({"LOCAL_RANK": "1", "SLURM_PROCID": "0"}, False),  # started by Lightning inside an interactive job
        ({"LOCAL_RANK": "0", "NODE_RANK": "1"}, False),
        ({"SLURM_PROCID": "2"}, False),
    ],
)
def test_the_first_process(monkeypatch, environment, first):
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (process_rank() == 0) is first


def test_work_within_other_work_has_no_bar_of_its_own():
    console, written = Console(), io.StringIO()
    console.screen = Screen(file=written, force_terminal=True)
    with console.progress("outer") as outer:
        with console.progress("inner") as inner:
            inner(2, 2)
        outer(1, 1)
    assert "outer" in written.getvalue() and "inner" not in written.getvalue()
