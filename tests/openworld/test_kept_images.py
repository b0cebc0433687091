"""What adding a class leaves on disk, in which order, and how much memory it takes."""

from __future__ import annotations

import os
import shutil
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from oltr import UserError
from oltr.openworld import add_class as adding
from oltr.openworld import kept_images
from oltr.openworld.add_class import add_class, read_new
from oltr.openworld.change_classes import remove_class
from oltr.runs import history
from oltr.runs.trained_run import TrainedRun


@pytest.fixture
def files(strangers):
    return next(iter(strangers.values()))


def test_copies_and_their_folders_are_synced_before_the_record(run, files, monkeypatch):
    events: list[int | str] = []
    insert, fsync = history._insert, os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append(os.fstat(handle).st_ino), fsync(handle)))
    monkeypatch.setattr(history, "_insert", lambda *given: (events.append("record"), insert(*given))[1])
    add_class(run, "lynx", files[:3])
    before = set(events[: events.index("record")])
    kept = sorted(run.folder.collected.iterdir())
    assert len(kept) == 3
    assert {place.stat().st_ino for place in (*kept, run.folder.collected, run.path)} <= before


def test_the_folder_is_synced_after_the_last_copy_has_its_name(run, files, monkeypatch):
    seen: list[int] = []
    monkeypatch.setattr(
        kept_images,
        "sync",
        lambda place: seen.append(len([*place.glob("[!.]*")]) if place.name == "collected" else -1),
    )
    add_class(run, "lynx", files[:3])
    assert seen[-1] == 3


def test_a_refused_action_leaves_no_copy(folder, files):
    mine, theirs = TrainedRun(folder), TrainedRun(folder)
    _ = mine.class_names
    add_class(theirs, "other", files[:1])
    before = sorted(each.name for each in (folder / "collected").iterdir())
    with pytest.raises(UserError, match="meanwhile"):
        add_class(mine, "lynx", files[1:4])
    assert sorted(each.name for each in (folder / "collected").iterdir()) == before


def test_somebody_elses_action_while_copying_is_noticed(folder, files, monkeypatch):
    mine, theirs = TrainedRun(folder), TrainedRun(folder)
    stage = kept_images._stage

    def meanwhile(*given):
        monkeypatch.setattr(kept_images, "_stage", stage)
        add_class(theirs, "lynx", files[:2])
        return stage(*given)

    monkeypatch.setattr(kept_images, "_stage", meanwhile)
    with pytest.raises(UserError, match="meanwhile"):
        add_class(mine, "lynx", files[:3])  # two of the same images
    again = TrainedRun(folder)
    assert again.changes.added[0].files and all(
        (folder / file).is_file() for file in again.changes.added[0].files
    )
    assert len([*(folder / "collected").iterdir()]) == 2


def test_what_would_be_refused_is_told_before_images_are_read(run, files, monkeypatch):
    monkeypatch.setattr(adding, "read_new", lambda *_: pytest.fail("read"))
    _ = run.class_names
    remove_class(TrainedRun(run.path), "red")
    with pytest.raises(UserError, match="meanwhile"):
        add_class(run, "fox", files[1:2])
    run.folder.history.write_bytes(b"no database" * 100)
    with pytest.raises(UserError, match="cannot be read or written"):
        add_class(run, "fox", files[1:2])


def test_leftovers_of_a_killed_action_do_no_harm(run, files):
    folder = run.folder.collected
    (folder / ".abc.part").mkdir(parents=True)
    (folder / ".abc.part" / "half.png").write_bytes(b"half")
    (folder / f"{'0' * 32}.png").write_bytes(b"of no action")
    (folder / f"{kept_images.digest_of(files[0])}.png").write_bytes(b"cut by a power failure")
    add_class(run, "lynx", files[:2])
    kept = TrainedRun(run.path).changes.added[0].files
    assert [(run.path / file).read_bytes() for file in kept] == [file.read_bytes() for file in files[:2]]


def test_a_file_changed_since_it_was_looked_at_is_refused(run, files, tmp_path, monkeypatch):
    mine = [shutil.copy(file, tmp_path / file.name) for file in files[:3]]

    def row(*given):
        shutil.copy(files[5], mine[1])
        return real(*given)

    real = adding.class_row
    monkeypatch.setattr(adding, "class_row", row)
    with pytest.raises(UserError, match=rf"{files[1].name} was changed"):
        add_class(run, "lynx", mine)
    assert "lynx" not in TrainedRun(run.path).class_names and not any(run.folder.collected.iterdir())
    monkeypatch.setattr(adding, "class_row", lambda *given: (mine[0].unlink(), real(*given))[1])
    with pytest.raises(UserError, match=rf"{files[0].name} was changed"):
        add_class(run, "lynx", mine)


def test_many_files_are_not_held_at_once(run, tmp_path):
    draw, large = np.random.default_rng(0), 1_000_000
    for number in range(60):
        place = tmp_path / f"{number:02}.png"
        Image.fromarray(draw.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(place)
        with place.open("ab") as file:
            file.write(bytes(large))  # decoders leave what follows the picture alone
    add_class(run, "warm", tmp_path / "00.png")
    tracemalloc.start()
    try:
        add_class(run, "noise", tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert run.counts[-1] == 60 and peak < 30 * large


def test_equal_and_unreadable_images_are_counted_apart(run, files, tmp_path):
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UserError, match="2 images of 3 cannot be read"):
        read_new(run, [tmp_path / "a.jpg", files[0], files[0], tmp_path / "b.jpg"])
