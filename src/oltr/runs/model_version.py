"""Which state of a run made an answer."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oltr.runs.run_model import RunModel

DIGITS = 8


def model_version(run: RunModel) -> str:
    """`1f0c3ab2.0`: the beginnings of the hashes of the run's weights and of its class changes (0: none)."""
    with run.folder.model.open("rb") as file:
        digest = hashlib.file_digest(file, "blake2b").hexdigest()
    changes = run.changes
    if not changes:
        return f"{digest[:DIGITS]}.0"
    state = hashlib.blake2b(repr((changes.kept, changes.names)).encode())
    for added in changes.added:
        state.update(added.weight.tobytes() + repr(added.bias).encode())
    return f"{digest[:DIGITS]}.{state.hexdigest()[:DIGITS]}"


def same_weights(version: str, other: str) -> bool:
    """Whether two versions are states of one run."""
    return version.partition(".")[0] == other.partition(".")[0]
