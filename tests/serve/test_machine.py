"""What is the machine's fault is told as such: a history that is locked or broken, and a full disk."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from oltr.runs import history
from oltr.serve.intake import Intake
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import files, png, upload

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def raising(problem: Exception):
    def fail(*_, **__):
        raise problem

    return fail


@pytest.fixture
def impatient(monkeypatch) -> None:
    """A locked history is given up at once."""
    connect = sqlite3.connect
    monkeypatch.setattr(history.sqlite3, "connect", lambda path, **kw: connect(path, **kw | {"timeout": 0}))


def test_a_locked_history_is_no_fault_of_the_request(client, folder, impatient, capsys):
    ids = upload(client, [png(UNKNOWN["cyan"], seed) for seed in range(2)])
    with closing(sqlite3.connect(folder / "history.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = client.post("/reject", json={"images": ids})
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        assert "locked" in answer.json()["why"] and "locked" in capsys.readouterr().err
    assert client.post("/reject", json={"images": ids}).status_code == 200


def test_a_broken_history_is_no_fault_of_the_request(client, folder):
    upload(client, [png(UNKNOWN["cyan"], 0)])
    (folder / "history.sqlite").write_bytes(b"no database" * 1000)
    answer = client.get("/state")
    assert answer.status_code == 503 and "retry-after" not in answer.headers


def full_while_written(patch) -> None:
    write = Path.open

    def opened(path: Path, *words, **options):
        if path.suffix == ".part":
            raise FULL
        return write(path, *words, **options)

    patch.setattr(Path, "open", opened)


def full_for_small_copies(patch) -> None:
    patch.setattr(Intake, "_make_thumbnail", raising(FULL))


def full_while_received(patch) -> None:
    patch.setattr(tempfile.SpooledTemporaryFile, "write", raising(FULL))


@pytest.mark.parametrize("full", [full_while_written, full_for_small_copies, full_while_received])
def test_a_full_disk_is_no_fault_of_the_request(client, monkeypatch, capsys, full):
    sent = files([png(UNKNOWN["cyan"], 0)])
    with monkeypatch.context() as patch:
        full(patch)
        answer = client.post("/images", files=sent)
    assert answer.status_code == 507, answer.text
    assert "No space left" in answer.json()["error"] and "No space left" in capsys.readouterr().err
    assert client.get("/state").json()["images"]["total"] == 0
    assert client.post("/images", files=sent).status_code == 200
