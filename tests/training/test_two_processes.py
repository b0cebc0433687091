"""Two processes that share each batch learn what one process learns."""

from __future__ import annotations

import pytest

from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.runs.outputs import Outputs
from oltr.training.run_folder import RunFolder
from tests.helpers.processes import run_python
from tests.helpers.training import assert_learned_the_same, shared_words


def train(pack, out, devices: int, method: str) -> None:
    words = shared_words(pack, out, "--devices", str(devices), method=method)
    done = run_python(["-m", "oltr.cli.main", *words])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", ["oltr", "oltr-paper"])
def test_weights_memory_and_outputs_match(pack, tmp_path, method):
    train(pack, tmp_path / "one", 1, method)
    train(pack, tmp_path / "two", 2, method)
    steps = 2 * (len(open_pack(pack).manifest.rows("train")) // 10)
    assert steps >= 10  # in each stage
    assert_learned_the_same(tmp_path / "one", tmp_path / "two")


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
