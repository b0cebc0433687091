"""A run folder copied while others work on it."""

from __future__ import annotations

import shutil
import sqlite3
import threading

import numpy as np
import pytest

from oltr import UserError
from oltr.runs.copy_run import copied_run
from oltr.runs.history import CollectedImage, History


def filled(folder):
    """A folder with what a copy is about."""
    (folder / "collected").mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    (folder / "collected" / ".x.part").mkdir()
    for name in ("run.yaml", "zoo", "checkpoints/last.pt"):
        (folder / name).write_text(name)
    return folder


def added(folder, number):
    """An action with an image, as `add_class` records it."""
    kept = f"collected/{number}.png"

    def images():
        (folder / kept).write_bytes(b"image")
        return [CollectedImage("", kept, np.zeros(20_000, np.float32)) for _ in range(5)]

    History(folder / "history.sqlite").record("add", str(number), {}, after=number - 1, images=images)


def test_the_copy_has_all_but_what_passes(tmp_path):
    run = filled(tmp_path / "run")
    added(run, 1)
    with copied_run(run, tmp_path / "copy") as part:
        assert not (tmp_path / "copy").exists()
        (part / "more").touch()
    found = sorted(str(each.relative_to(tmp_path / "copy")) for each in (tmp_path / "copy").rglob("*"))
    assert found == ["collected", "collected/1.png", "history.sqlite", "more", "run.yaml", "zoo"]


def test_a_failure_leaves_nothing(tmp_path):
    run = filled(tmp_path / "run")
    with pytest.raises(ZeroDivisionError), copied_run(run, tmp_path / "copy"):
        raise ZeroDivisionError
    with pytest.raises(UserError, match="lies in the run"), copied_run(run, run / "copy"):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_an_action_in_the_middle_of_copying(tmp_path, monkeypatch):
    run, copyfile, done = filled(tmp_path / "run"), shutil.copyfile, []
    added(run, 1)

    def busy(source, target, **given):
        added(run, 2 + len(done))
        done.append(source)
        return copyfile(source, target, **given)

    monkeypatch.setattr(shutil, "copyfile", busy)
    with copied_run(run, tmp_path / "copy"):
        pass
    actions = History(tmp_path / "copy" / "history.sqlite").actions()
    assert len(done) > 1 and [each.id for each in actions] == [1]
    assert all((tmp_path / "copy" / image.kept).is_file() for each in actions for image in each.images)


def test_a_history_that_is_written_all_the_time(tmp_path):
    run, stop = filled(tmp_path / "run"), threading.Event()
    added(run, 1)

    def write():
        number = 2
        while not stop.is_set():
            added(run, number)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(2):
            with copied_run(run, tmp_path / str(number)):
                pass
            with sqlite3.connect(tmp_path / str(number) / "history.sqlite") as database:
                assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            actions = History(tmp_path / str(number) / "history.sqlite").actions()
            assert actions and all(len(each.images) == 5 for each in actions)
            assert all((tmp_path / str(number) / each.images[0].kept).is_file() for each in actions)
    finally:
        stop.set()
        writer.join()
