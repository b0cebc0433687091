"""The training images per class, kept where a loss finds them on any device."""

from __future__ import annotations

from torch import Tensor

from oltr.nn.network import Network


def keep_counts(network: Network, train_counts: Tensor) -> Network:
    """The same network, whose head holds the counts from now on: they move and are saved with it."""
    network.head.register_buffer("train_counts", train_counts.float())
    return network


def counts_of(network: Network) -> Tensor:
    """n_c as float32: K."""
    return network.head.get_buffer("train_counts")
