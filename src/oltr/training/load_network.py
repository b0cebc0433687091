"""The network of a run folder."""

from __future__ import annotations

import torch

from oltr.config import RunConfig
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.nn.shifted_logits import shift_logits
from oltr.training.build import build_method, build_network
from oltr.training.run_folder import RESUME, RunFolder


def load_network(folder: RunFolder, config: RunConfig, counts: torch.Tensor) -> Network:
    """The trained network in evaluation mode; `counts` are the training images per class (K)."""
    weights = _weights(folder)
    network = build_network(config, build_method(config, counts), config.num_stages)
    network.auxiliary = None  # as in the weights of a finished run
    if "head.shift" in weights:
        shift_logits(network.head, torch.zeros_like(weights["head.shift"]))
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
