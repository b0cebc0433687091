"""The network of a run folder."""

from __future__ import annotations

import torch

from oltr.config import RunConfig
from oltr.errors import UserError
from oltr.nn.added_memory import AddedMemory, add_memory
from oltr.nn.network import Network
from oltr.nn.shifted_logits import shift_logits
from oltr.training.build import build_method, build_network
from oltr.training.run_folder import RESUME, RunFolder

MEMORY = "head.added_memory."
SHIFT = "head.shift"


def load_network(
    folder: RunFolder, config: RunConfig, counts: torch.Tensor, *, memory: bool = True
) -> Network:
    """The trained network in evaluation mode; `counts` are the training images per class (K).

    `memory` false leaves the class means out that were added to its classifier after training, and the
    adjustment that was chosen for the sum.
    """
    weights = _weights(folder)
    if not memory and f"{MEMORY}means" in weights:
        kept = (name for name in weights if not name.startswith((MEMORY, SHIFT)))
        weights = {name: weights[name] for name in kept}
    network = build_network(config, build_method(config, counts), config.num_stages)
    network.auxiliary = None  # as in the weights of a finished run
    if (means := weights.get(f"{MEMORY}means")) is not None:
        add_memory(network.head, AddedMemory(*means.shape))
    if SHIFT in weights:
        shift_logits(network.head, torch.zeros_like(weights[SHIFT]))
    try:
        network.load_state_dict(weights)
    except RuntimeError as problem:  # e.g. a run of an earlier version
        raise UserError(
            f"The weights {folder.model} do not fit the network of this run.",
            str(problem).split("\n\t")[1],
            "train the run again",
        ) from None
    return network.eval()


def _weights(folder: RunFolder) -> dict[str, torch.Tensor]:
    anew = f"{RESUME}, which writes it anew"
    if not folder.model.is_file():
        raise UserError(f"{folder.model} is missing.", try_this=anew)
    try:
        return folder.load_weights(folder.model)
    except UserError as problem:
        raise UserError(problem.what, problem.why, anew) from None
