"""Two processes that share each batch learn what one process learns."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from oltr.data.manifest import Manifest
from oltr.data.store import open_pack, write_pack_from
from oltr.engine.run_folder import RunFolder
from oltr.evaluation.outputs import Outputs


def train(pack, out, devices: int, method: str) -> None:
    # A network without batch statistics: those would differ between half and whole batches.
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "oltr.cli.main",
            "train",
            str(pack),
            "--recipe",
            "glyphs",
            "--method",
            method,
            "--backbone",
            "test_convnext",
            "--epochs",
            "2",
            "2",
            "--set",
            "stage1.batch_size=10",
            "--set",
            "stage2.batch_size=10",
            "--set",
            "stage1.lr=0.02",
            "--set",
            "stage1.classifier_lr=0.02",
            "--cpu",
            "--devices",
            str(devices),
            "--out",
            str(out),
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("method", ["oltr", "oltr-paper"])
def test_weights_memory_and_outputs_match(pack, tmp_path, method):
    train(pack, tmp_path / "one", 1, method)
    train(pack, tmp_path / "two", 2, method)
    steps = 2 * (len(open_pack(pack).manifest.rows("train")) // 10)
    assert steps >= 10  # in each stage
    one, two = (load_file(RunFolder(tmp_path / name).model) for name in ("one", "two"))
    assert one.keys() == two.keys() and "head.meta.memory.centroids" in one
    for name in one:
        assert torch.allclose(one[name].float(), two[name].float(), atol=1e-4), name
    first = [load_file(RunFolder(tmp_path / name).stage_weights(1)) for name in ("one", "two")]
    for name in first[0]:
        assert torch.allclose(first[0][name], first[1][name], atol=1e-4), name
    for split in ("val", "test", "open"):
        a, b = (
            Outputs.load(RunFolder(tmp_path / run).outputs / f"{split}.safetensors") for run in ("one", "two")
        )
        assert torch.equal(a.labels, b.labels)
        assert torch.allclose(a.logits, b.logits, atol=5e-3)


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
