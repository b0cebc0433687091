"""A run that is killed or stopped at any step goes on to the very weights of an uninterrupted one."""

from __future__ import annotations

import functools
import random
import signal

import pytest
import torch
from safetensors.torch import load_file

from oltr.training.run_folder import RunFolder
from tests.helpers.processes import run_python
from tests.helpers.training import STRUCK, train_words

STEPS = 4 * 8  # 64 images in batches of 8, two epochs in each of two stages
NEVER = 10**9


def train(pack, out, *flags, number=signal.SIGKILL, at=NEVER, method="oltr", backbone="resnet10_half"):
    words = train_words(pack, out, *flags, method=method, backbone=backbone)
    return run_python(["-c", STRUCK, str(int(number)), str(at), *words])


def same_weights(a, b):
    a, b = load_file(RunFolder(a).model), load_file(RunFolder(b).model)
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


@pytest.fixture(scope="module")
def whole(pack, tmp_path_factory):
    """The uninterrupted run of a method, trained when it is first asked for."""

    @functools.cache
    def run(method):
        out = tmp_path_factory.mktemp(method) / "run"
        done = train(pack, out, method=method)
        assert done.returncode == 0, done.stderr
        return out

    return run


@pytest.mark.soak
@pytest.mark.parametrize("method", ["oltr", "oltr-paper"])
def test_killed_at_a_random_step_and_resumed(pack, whole, tmp_path, method):
    at = random.randint(1, STEPS)
    killed = train(pack, tmp_path / "run", at=at, method=method)
    assert killed.returncode == -signal.SIGKILL, f"step {at}: {killed.stderr}"
    assert not RunFolder(tmp_path / "run").model.exists()
    resumed = train(pack, tmp_path / "run", "--resume", method=method)
    assert resumed.returncode == 0, f"step {at}: {resumed.stderr}"
    same_weights(tmp_path / "run", whole(method))
    losses = [RunFolder(run).metrics.read_text().splitlines() for run in (tmp_path / "run", whole(method))]
    assert [row.split(",")[:4] for row in losses[0]] == [row.split(",")[:4] for row in losses[1]]


@pytest.mark.soak
def test_killed_in_both_stages(pack, whole, tmp_path):
    for at in (10, 8, 5):  # in stage 1, then twice in what is left
        train(pack, tmp_path / "run", "--resume", at=at)
    assert train(pack, tmp_path / "run", "--resume").returncode == 0
    same_weights(tmp_path / "run", whole("oltr"))


def test_ctrl_c_ends_with_a_word_and_resumes(pack, whole, tmp_path):
    stopped = train(pack, tmp_path / "run", number=signal.SIGINT, at=18)
    assert stopped.returncode == 130
    assert "--resume" in stopped.stderr and "Traceback" not in stopped.stderr
    assert train(pack, tmp_path / "run", "--resume").returncode == 0
    same_weights(tmp_path / "run", whole("oltr"))


@pytest.mark.soak
def test_a_backbone_with_dropout_resumes_exactly_too(pack, tmp_path):
    # Random depth and dropout draw from torch's global generator.
    backbone = ("--set", "stage1.lr=0.01", "--image-size", "32")
    for out, interrupted in (("whole", NEVER), ("run", 11)):
        train(pack, tmp_path / out, *backbone, at=interrupted, backbone="efficientnet_lite0", method="plain")
    resumed = train(
        pack, tmp_path / "run", *backbone, "--resume", backbone="efficientnet_lite0", method="plain"
    )
    assert resumed.returncode == 0, resumed.stderr
    same_weights(tmp_path / "run", tmp_path / "whole")
