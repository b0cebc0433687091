"""Which state of a run made an answer."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oltr.runs.run_model import RunModel

DIGITS = 8


def weights_version(run: RunModel) -> str:
    """The beginning of the hash of the run's weights."""
    with run.folder.model.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:DIGITS]


def model_version(run: RunModel) -> str:
    """`1f0c3ab2.0`: the versions of the run's weights and of its class changes (0: none)."""
    changes = run.changes
    if not changes:
        return f"{run.weights_version}.0"
    state = hashlib.blake2b(repr((changes.kept, changes.names)).encode())
    for added in changes.added:
        state.update(added.weight.tobytes() + repr(added.bias).encode())
    return f"{run.weights_version}.{state.hexdigest()[:DIGITS]}"


def same_weights(version: str, other: str) -> bool:
    """Whether two versions are states of one run."""
    return version.partition(".")[0] == other.partition(".")[0]
