"""Files that cannot be read as weights: each is refused with its reason, and none runs code."""

from __future__ import annotations

import argparse
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from oltr.errors import UserError
from oltr.nn.weight_files import read_weights

STATE = {"conv.weight": torch.randn(64, 64), "conv.bias": torch.randn(64)}


class Code:
    """Unpickled by someone careless, it makes a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def refusal(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match="could not be read as weights") as refused:
            read_weights(path)
    assert "weights_only" not in str(refused.value) and "Traceback" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_file_is_refused_and_not_run(tmp_path, zipped):
    path, made = tmp_path / "code.pth", tmp_path / "made"
    torch.save({"state_dict": STATE, "x": Code(made)}, path, _use_new_zipfile_serialization=zipped)
    assert "could run code" in refusal(path) and "torch.save(network.state_dict(), FILE)" in refusal(path)
    assert not made.exists()
    torch.load(path, weights_only=False)
    assert made.exists()  # the file was dangerous


@pytest.mark.parametrize("protocol", range(6))
def test_code_in_a_plain_pickle_is_refused_and_not_run(tmp_path, protocol):
    path, made = tmp_path / "code.pth", tmp_path / "made"
    path.write_bytes(pickle.dumps(Code(made), protocol))
    refusal(path)
    assert not made.exists()
    pickle.loads(path.read_bytes())
    assert made.exists()


def test_the_environment_does_not_allow_code(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    torch.save({"x": Code(tmp_path / "made")}, tmp_path / "code.pth")
    refusal(tmp_path / "code.pth")
    assert not (tmp_path / "made").exists()


def test_code_under_the_name_of_safetensors(tmp_path):
    torch.save({"x": Code(tmp_path / "made")}, tmp_path / "code.safetensors")
    refusal(tmp_path / "code.safetensors")
    assert not (tmp_path / "made").exists()


def test_a_trainers_own_objects_are_named(tmp_path):
    torch.save({"model": STATE, "args": argparse.Namespace(lr=1)}, tmp_path / "x.pth")
    assert "It holds argparse.Namespace" in refusal(tmp_path / "x.pth")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("kind", ["zipped.pth", "old.pth", "x.safetensors"])
def test_a_file_that_was_cut_off(tmp_path, kind, share):
    path = tmp_path / kind
    if kind == "x.safetensors":
        save_file(STATE, path)
    else:
        torch.save(STATE, path, _use_new_zipfile_serialization=kind == "zipped.pth")
    assert read_weights(path).keys() == STATE.keys()
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert "It ends too early" in refusal(path)


@pytest.mark.parametrize("name", ["empty.pth", "empty.safetensors"])
def test_an_empty_file(tmp_path, name):
    (tmp_path / name).touch()
    assert "It ends too early" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["page.pth", "page.safetensors", "page.txt"])
@pytest.mark.parametrize("text", ["<!doctype html>\n<p>Not found</p>", "version https://git-lfs", "oh no"])
def test_a_text_file(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert "It is a text file" in refusal(tmp_path / name)


def test_numpy_files(tmp_path):
    np.savez(tmp_path / "features.npz", features=np.zeros((3, 2)))
    np.save(tmp_path / "features.npy", np.zeros((3, 2)))
    assert "It is a NumPy archive (.npz)" in refusal(tmp_path / "features.npz")
    assert "It is a NumPy array" in refusal(tmp_path / "features.npy")


def test_bytes_of_another_format(tmp_path):
    for name in ("x.pth", "x.safetensors"):
        (tmp_path / name).write_bytes(bytes(range(255, 100, -1)) * 9)
        assert "damaged or of another format" in refusal(tmp_path / name)


def test_a_folder_is_told_as_one(tmp_path):
    assert "Is a directory" in refusal(tmp_path)
