"""A full disk, a forbidden place, a loss gone astray, Ctrl-C: a clear word, nothing lost or half-written."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import QUICK
from tests.helpers.training import stop_at

ROOM = 5_500_000  # bytes on the small disk: one epoch of the smallest network fits, a whole run does not


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """A folder with little room: a real one where we may mount, else one that only seems full."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    if (
        os.geteuid() == 0
        and shutil.which("mount")
        and subprocess.run(mount, capture_output=True).returncode == 0
    ):
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
        return
    real = Path.write_bytes

    def write_bytes(self, content):
        used = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        if folder in self.parents and used + len(content) > ROOM:
            real(self, bytes(content)[:10])
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return real(self, content)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    yield folder


def leftovers(folder):
    return [
        str(path)
        for path in folder.rglob("*")
        if path.name.endswith((".part", ".tmp")) or path.name[0] == "."
    ]


def fill(folder, leave):
    """Take the room that is left, but so many bytes."""
    free = min(shutil.disk_usage(folder).free, ROOM)
    with (folder / "ballast").open("ab") as file:
        file.write(b"\0" * max(free - leave, 0))


def test_train_on_a_full_disk_and_again_with_room(oltr, small_disk, pack):
    fill(small_disk, 300_000)
    command = ("train", pack, *QUICK, "--method", "plain", "--out", small_disk / "run")
    oltr(*command).refused("could not be written: No space left on device", "a disk with room")
    assert not (small_disk / "run").exists()
    fill(small_disk, 0)
    oltr(*command).refused("No space left on device")
    assert leftovers(small_disk) == [] and not (small_disk / "run").exists()


def test_a_disk_that_fills_up_later_keeps_the_epochs_before(oltr, small_disk, pack, trained, tmp_path):
    command = ("train", pack, *QUICK, "--out")
    oltr(*command, small_disk / "run").refused(
        "stage1.safetensors could not be written: No space left on device"
    )
    assert leftovers(small_disk) == [] and (small_disk / "run" / "checkpoints" / "last.pt").is_file()
    shutil.copytree(small_disk / "run", tmp_path / "roomy")
    assert oltr(*command, tmp_path / "roomy", "--resume").code == 0
    ours, theirs = ((run / "model.safetensors").read_bytes() for run in (tmp_path / "roomy", trained["oltr"]))
    assert ours == theirs


def test_reports_survive_a_full_disk(oltr, small_disk, trained):
    run = shutil.copytree(
        trained["oltr"], small_disk / "run", ignore=shutil.ignore_patterns("checkpoints", "model*")
    )
    before = (run / "report.json").read_bytes()
    fill(small_disk, 0)
    said = oltr("evaluate", run, "--threshold", "0.9")
    if said.code:  # where the disk is a real one
        said.refused("report.json could not be written", "What was there before is kept")
        assert (run / "report.json").read_bytes() == before
    assert leftovers(small_disk) == []


@pytest.mark.parametrize(
    "words",
    [
        "train PACK QUICK --out FILE",
        "train PACK QUICK --out FILE/run",
        "train PACK QUICK --out /proc/nowhere/run",
        "data pack PHOTOS --size 16 --out FILE/x.pack",
        "data longtail PHOTOS --min 1 --out FILE",
        "data longtail PHOTOS --min 1 --out FILE/x",
        "data stats PHOTOS --figure FILE/x.png",
        "demo --out FILE",
        "demo --out FILE/x",
    ],
)
def test_a_place_that_cannot_be_written(oltr, pack, photos, tmp_path, monkeypatch, words, few_glyphs):
    (tmp_path / "file").write_text("precious")
    places = {"PACK": pack, "PHOTOS": photos, "FILE": tmp_path / "file"}
    arguments = []
    for word in words.split():
        for name, place in places.items():
            word = word.replace(name, str(place))
        arguments += QUICK if word == "QUICK" else [word]
    oltr(*arguments).refused("/proc/nowhere" if "/proc" in words else str(tmp_path / "file"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "precious"


def test_a_loss_gone_astray_in_the_first_epoch_leaves_no_run(oltr, pack, tmp_path):
    command = ("train", pack, *QUICK, "--method", "plain", "--out", tmp_path / "run")
    oltr(*command, "--set", "stage1.lr=1e30").refused("turned NaN or infinite in stage 1, epoch 1", "smaller")
    assert not (tmp_path / "run").exists()
    assert oltr(*command).code == 0


def test_a_loss_gone_astray_later_keeps_the_epochs_before(oltr, pack, tmp_path):
    command = ("train", pack, *QUICK, "--method", "plain", "--out", tmp_path / "run")
    oltr(*command, "--set", "stage2.lr=1e30").refused("stage 2, epoch 1", "a new --out")
    kept = tmp_path / "run" / "checkpoints" / "last.pt"
    assert kept.is_file() and (tmp_path / "run" / "metrics.csv").read_text().count("\n") == 2


def test_ctrl_c_before_the_first_epoch_leaves_no_run(oltr, pack, tmp_path, monkeypatch):
    stop_at(monkeypatch, 1)
    command = ("train", pack, *QUICK, "--out", tmp_path / "run")
    said = oltr(*command)
    assert (
        said.code == 130 and "Stopped" in said.err and "--resume" in said.err and "Traceback" not in said.err
    )
    assert not (tmp_path / "run").exists()
    monkeypatch.undo()
    assert oltr(*command, "--resume").code == 0
