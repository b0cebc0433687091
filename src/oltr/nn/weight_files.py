"""Weight files read without running code from them, and why one could not be read."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from oltr.errors import UserError

CUT = "It ends too early: its download or copy was cut off."
DAMAGED = "It is damaged or of another format."
STATE_DICT = "a file with the state dict alone: torch.save(network.state_dict(), FILE), or .safetensors"


def read_file(path: Path) -> Any:
    """What a .safetensors file or one of torch.save holds: tensors, numbers and text; code is refused."""
    try:
        return _read(path)
    except Exception as problem:  # many kinds, which all mean the same to the user
        # PyTorch's message is not shown: it advises weights_only=False, which may run code from the file.
        raise UserError(f"{path} could not be read as weights.", *_reason(path, problem)) from problem


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors of a file, without trainers' wrapping; of the released code's the backbone's."""
    state = read_file(path)
    for wrapper in ("state_dict", "model", "state_dict_best", "feat_model"):
        inner = state.get(wrapper) if isinstance(state, Mapping) else None
        state = inner if isinstance(inner, Mapping) else state
    if not isinstance(state, Mapping):
        raise UserError(f"{path} holds no named weights.", try_this="a file with a network's state dict")
    return {_strip(str(name)): value for name, value in state.items() if isinstance(value, Tensor)}


def _read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kinds of pickles: those that matter end in an error
        return torch.load(path, map_location="cpu", weights_only=True)


def _reason(path: Path, problem: Exception) -> tuple[str, str]:
    """Why a file could not be read, and what to try."""
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as unreadable:
        return f"{unreadable.strerror}.", ""
    if objects := re.search(r"GLOBAL ([\w.]+)", str(problem)):
        why = f"It holds {objects[1]}, not only tensors, numbers and text; reading that could run code."
        return why, STATE_DICT
    if head.startswith(b"PK"):
        return _archive_reason(path)
    if head.startswith(b"\x93NUMPY"):
        return "It is a NumPy array.", STATE_DICT
    if "EOF" in str(problem) or not head or _cut_safetensors(path, head):
        return CUT, "fetch it again"
    if head.startswith(b"\x80"):
        return "It is a pickle that torch.save did not write, and reading it could run code.", STATE_DICT
    if head.isascii() and not re.search(rb"[^\s\x20-\x7e]", head):
        return "It is a text file, such as a web page or a Git LFS pointer.", "fetch the file itself"
    return DAMAGED, ""


def _archive_reason(path: Path) -> tuple[str, str]:
    if not zipfile.is_zipfile(path):
        return CUT, "fetch it again"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.endswith(".npy") for name in names):
        return "It is a NumPy archive (.npz).", STATE_DICT
    if any("/code/" in name for name in names):
        return "It is a TorchScript program, which holds code.", STATE_DICT
    return DAMAGED, ""


def _cut_safetensors(path: Path, head: bytes) -> bool:
    """Whether a file begins as .safetensors do: the length of a header, and the header."""
    return path.suffix == ".safetensors" and head[8:9] == b"{"


def _strip(name: str) -> str:
    for prefix in ("module.", "backbone.net.", "backbone."):
        name = name.removeprefix(prefix)
    return name
