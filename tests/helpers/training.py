"""`oltr train` as it is started in a shell, and runs of it that must have learned the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from oltr.runs.outputs import Outputs
from oltr.training.run_folder import RunFolder
from oltr.training.step import Step
from tests.helpers.tiny import SMALL_STEPS

# Trains through the command line, and sends itself a signal at the N-th step over both stages.
STRUCK = """
import os, sys
from oltr.training.step import Step
number, at = int(sys.argv[1]), int(sys.argv[2])
step, seen = Step.__call__, []
def struck(self, batch):
    seen.append(at)
    if len(seen) == at:
        os.kill(os.getpid(), number)
    return step(self, batch)
Step.__call__ = struck
from oltr.cli.main import main
main(sys.argv[3:])
"""


def train_words(
    pack: Path, out: Path, *flags: str, method: str = "oltr", backbone: str = "resnet10_half", batch: int = 8
) -> list[str]:
    """The words of `oltr train` for two epochs in each of two stages on a CPU."""
    return [
        "train",
        str(pack),
        "--recipe",
        "glyphs",
        "--method",
        method,
        "--backbone",
        backbone,
        "--epochs",
        "2",
        "2",
        "--set",
        f"stage1.batch_size={batch}",
        "--set",
        f"stage2.batch_size={batch}",
        *(word for change in SMALL_STEPS for word in ("--set", change)),
        "--cpu",
        "--out",
        str(out),
        *flags,
    ]


def shared_words(pack: Path, out: Path, *flags: str, method: str = "oltr") -> list[str]:
    """A training that gives the same, up to rounding, however many processes share its batches."""
    # A network without batch statistics: those would differ between half and whole batches.
    return train_words(pack, out, *flags, method=method, backbone="test_convnext", batch=10)


def assert_learned_the_same(one: Path, other: Path) -> None:
    """Weights of two runs after each stage, their losses, and what they say of every image."""
    a, b = RunFolder(one), RunFolder(other)
    losses = [pd.read_csv(folder.metrics)["loss"].to_numpy() for folder in (a, b)]
    np.testing.assert_allclose(*losses, rtol=1e-3)
    for ours, theirs in ((a.model, b.model), (a.stage_weights(1), b.stage_weights(1))):
        weights, others = load_file(ours), load_file(theirs)
        assert weights.keys() == others.keys()
        for name in weights:
            assert torch.allclose(weights[name].float(), others[name].float(), atol=1e-4), name
    for split in ("val", "test", "open"):
        said, answer = (Outputs.load(run.outputs / f"{split}.safetensors") for run in (a, b))
        assert torch.equal(said.labels, answer.labels)
        assert torch.allclose(said.logits, answer.logits, atol=5e-3)


def stop_at(monkeypatch: pytest.MonkeyPatch, at: int) -> list[int]:
    """Ctrl-C at that training step, counted over all stages and runs; once. The steps seen, as they come."""
    seen: list[int] = []
    real = Step.__call__

    def stop(self, batch):
        seen.append(len(seen) + 1)
        if len(seen) == at:
            raise KeyboardInterrupt
        return real(self, batch)

    monkeypatch.setattr(Step, "__call__", stop)
    return seen
