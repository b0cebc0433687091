import threading

import pytest
import torch

from oltr.errors import UserError
from oltr.training.checkpoint import CheckpointWriter, Snapshot, write_state


def test_a_snapshot_stays_when_training_goes_on():
    weight = torch.ones(3, requires_grad=True)
    state = {"epoch": 2, "network": {"w": weight}, "groups": [{"lr": 0.1, "momentum": torch.zeros(2)}]}
    kept = Snapshot(state)
    with torch.no_grad():
        weight.add_(1)
    state["groups"][0]["momentum"].add_(1)
    kept = kept.state()
    assert kept["network"]["w"].tolist() == [1, 1, 1] and not kept["network"]["w"].requires_grad
    assert kept["groups"][0]["momentum"].tolist() == [0, 0]
    assert kept["epoch"] == 2 and kept["groups"][0]["lr"] == 0.1


def test_one_thing_is_written_after_another_and_all_when_waited_for():
    writer, written, go = CheckpointWriter(), [], threading.Event()
    writer.start(lambda: (go.wait(), written.append(1)))
    assert not written  # training goes on meanwhile
    go.set()
    writer.start(lambda: written.append(2))
    writer.wait()
    assert written == [1, 2]
    writer.wait()  # nothing is under way


def test_a_failure_to_write_is_told_at_the_next_chance_and_once(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    writer = CheckpointWriter()
    writer.start(lambda: write_state(Snapshot({"epoch": 1}), tmp_path / "file" / "last.pt"))
    with pytest.raises(UserError, match="could not be written"):
        writer.wait()
    writer.wait()


def test_what_was_written_is_read_again(tmp_path):
    write_state(Snapshot({"epoch": 1, "w": torch.arange(3)}), tmp_path / "last.pt")
    read = torch.load(tmp_path / "last.pt", weights_only=True)
    assert read["epoch"] == 1 and read["w"].tolist() == [0, 1, 2]
