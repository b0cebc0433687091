"""Two processes that share each batch learn what one process learns."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.runs.outputs import Outputs
from oltr.training.run_folder import RunFolder
from tests.helpers.processes import run_python
from tests.helpers.training import assert_learned_the_same, shared_words

MIXED = ("views=2", "mix=cutmix", "mix_partner=balanced", "weight_decay_on=matrices")
MOSAICS = ("batch_size=32", "mosaics=0.5")  # sixteen images in a process: the mosaics are those of one


def train(pack, out, devices: int, method: str, changes: tuple[str, ...] = ()) -> None:
    flags = [word for change in changes for stage in (1, 2) for word in ("--set", f"stage{stage}.{change}")]
    words = shared_words(pack, out, "--devices", str(devices), *flags, method=method)
    done = run_python(["-m", "oltr.cli.main", *words])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("oltr", ()),
        ("oltr-paper", ()),
        ("oltr2", ()),  # whose score is fitted to the training images
        pytest.param("oltr", MIXED, marks=pytest.mark.soak),
        pytest.param("oltr", MOSAICS, marks=pytest.mark.soak),
    ],
)
def test_weights_memory_and_outputs_match(pack, tmp_path, method, changes):
    train(pack, tmp_path / "one", 1, method, changes)
    train(pack, tmp_path / "two", 2, method, changes)
    steps = 2 * (len(open_pack(pack).manifest.rows("train")) // 10)
    assert steps >= 10  # in each stage
    has_memory = "head.meta.memory.centroids" in load_file(RunFolder(tmp_path / "one").model)
    assert has_memory == (method != "oltr2")
    assert_learned_the_same(tmp_path / "one", tmp_path / "two")


# Trains through the command line; the process with this rank is interrupted at its third step.
FAILING = """
import os, pathlib, sys
from oltr.training.step import Step
rank, noted = sys.argv[1], pathlib.Path(sys.argv[2])
step, seen = Step.__call__, []
def failing(self, batch):
    seen.append(batch)
    if len(seen) == 3 and os.environ.get("LOCAL_RANK", "0") == rank:
        raise KeyboardInterrupt
    return step(self, batch)
Step.__call__ = failing
if "LOCAL_RANK" in os.environ:
    noted.write_text(str(os.getpid()))
from oltr.cli.main import main
main(sys.argv[3:])
"""


@pytest.mark.parametrize("rank", [0, 1])
def test_when_one_process_fails_the_other_ends(pack, tmp_path, rank):
    script, noted = tmp_path / "failing.py", tmp_path / "pid"
    script.write_text(FAILING)
    began = time.monotonic()
    done = run_python(
        [str(script), str(rank), str(noted), *shared_words(pack, tmp_path / "run", "--devices", "2")]
    )
    assert time.monotonic() - began < 120
    assert "Stopped." in done.stderr and done.returncode == 130 if rank == 0 else done.returncode != 0
    assert has_ended(int(noted.read_text()))
    if rank == 0:
        assert "Traceback" not in done.stderr and not (tmp_path / "run").exists()


def has_ended(pid: int) -> bool:
    """Within a few seconds; a zombie has ended, too."""
    status = Path(f"/proc/{pid}/status")
    for _ in range(100):
        if not status.exists() or "State:\tZ" in status.read_text():
            return True
        time.sleep(0.05)
    return False


def test_a_loss_turned_nan_stops_both_processes(pack, tmp_path):
    flags = ("--devices", "2", "--set", "stage1.lr=1e30", "--set", "stage1.classifier_lr=1e30")
    done = run_python(["-m", "oltr.cli.main", *shared_words(pack, tmp_path / "run", *flags)])
    assert done.returncode == 2 and "stage 1, epoch 1" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_split_with_fewer_images_than_processes(pack, tmp_path):
    manifest = open_pack(pack).manifest
    open_rows = manifest.positions("open")
    # All but one open image become training images of an old class: a pack is read by row, so rows stay.
    table = manifest.table.copy()
    table.loc[open_rows[1:], ["label", "split"]] = [manifest.classes[0], "train"]
    images = open_pack(pack).images
    small = write_pack_from(Manifest.build(table, tmp_path), images, 32, tmp_path / "small.pack")
    train(small, tmp_path / "run", 2, "plain")
    assert len(Outputs.load(RunFolder(tmp_path / "run").outputs / "open.safetensors")) == 1
