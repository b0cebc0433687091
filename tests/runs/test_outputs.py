import errno
from pathlib import Path

import pytest
import torch

from oltr.errors import UserError
from oltr.runs.outputs import Outputs


def some(n=5, k=3, d=4, **more) -> Outputs:
    return Outputs(torch.randn(n, k), torch.randint(-1, k, (n,)), torch.randn(n, d), **more)


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("n", [5, 0])
def test_round_trip(tmp_path, memory, n):
    more = {"embeddings": torch.randn(n, 4), "reachability": torch.rand(n)} if memory else {}
    outputs = some(n, **more)
    outputs.save(tmp_path / "new folder" / "tést.safetensors")
    again = Outputs.load(tmp_path / "new folder" / "tést.safetensors")
    assert len(again) == n
    for name in ("logits", "labels", "features", "embeddings", "reachability"):
        ours, theirs = getattr(outputs, name), getattr(again, name)
        assert (ours is None and theirs is None) or (ours.dtype == theirs.dtype and torch.equal(ours, theirs))


def test_stores_one_precision():
    outputs = Outputs(
        torch.zeros(2, 3).bfloat16(), torch.zeros(2, dtype=torch.int32), torch.zeros(2, 4).double()
    )
    assert outputs.logits.dtype == outputs.features.dtype == torch.float32
    assert outputs.labels.dtype == torch.int64


def test_probabilities_sum_to_one():
    torch.testing.assert_close(some().probabilities().sum(1), torch.ones(5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": torch.zeros(4, 3)}, r"logits must be N×K; got \(4, 3\)"),
        ({"logits": torch.zeros(5)}, "logits must be N×K"),
        ({"features": torch.zeros(6, 4)}, "features must be N×D"),
        ({"embeddings": torch.zeros(5)}, "embeddings must be N×D"),
        ({"reachability": torch.zeros(5, 1)}, "reachability must be N"),
        ({"labels": torch.zeros(5, 1)}, "labels must be N"),
        ({"labels": torch.full((5,), 3)}, r"labels must lie in -1..2"),
        ({"labels": torch.full((5,), -2)}, r"labels must lie in -1..2"),
    ],
)
def test_wrong_shapes_are_named(change, message):
    right = {"logits": torch.zeros(5, 3), "labels": torch.zeros(5), "features": torch.zeros(5, 4)}
    with pytest.raises(ValueError, match=message):
        Outputs(**{**right, **change})


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(UserError, match="no cached outputs"):
        Outputs.load(tmp_path / "none")
    (tmp_path / "broken").write_bytes(b"not a tensor file")
    with pytest.raises(UserError, match="cannot be read"):
        Outputs.load(tmp_path / "broken")


def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "test.safetensors"
    some().save(path)
    before = path.read_bytes()

    real = Path.write_bytes

    def half(self, content):
        real(self, b"half")
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(UserError, match=r"no space left on device\. What was there before is kept"):
        some().save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["test.safetensors"]
