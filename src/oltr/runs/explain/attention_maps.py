"""Where attention looks: one number per position of the map, read off the network's own modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from oltr.errors import UserError
from oltr.nn.network import Network


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Maps of N images, N×H×W float32 each; None where the network attends without that part."""

    self_attention: np.ndarray | None  # ‖SA(f)‖₂ over the channels: how much a position gathers from all
    spatial: np.ndarray | None  # MA(f), the weight of a position; sums to 1
    modulated: np.ndarray | None  # ‖MA(f) ⊗ SA(f)‖₂: what is added at a position
    size: tuple[int, int]  # H, W


@contextmanager
def recorded_attention(network: Network) -> Iterator[Callable[[], AttentionMaps]]:
    """Record attention while a batch of views N×3×s×s passes through the network; call the value for maps.

    SA(f) is a map of vectors, not of weights: its length at each position stands for it.
    """
    attention = network.attention
    with (
        _results(None if attention is None else attention.self_attention) as context,
        _results(None if attention is None else attention.spatial) as weight,
    ):
        yield lambda: _maps(context, weight)


@torch.inference_mode()
def attention_maps(network: Network, views: Tensor) -> AttentionMaps:
    """The maps of views N×3×s×s."""
    with recorded_attention(network.eval()) as maps:
        network.embed(views)
    return maps()


def _maps(context: list[Tensor], weight: list[Tensor]) -> AttentionMaps:
    if not context and not weight:
        raise UserError(
            "This network has no attention.",
            "Its method or its settings leave it out, or the backbone gives no feature map.",
            "a run of oltr, with settings.attention modulated, self or spatial",
        )
    gathered = context[0].float() if context else None  # N×C×H×W
    spatial = weight[0].float() if weight else None  # N×1×H×W
    both = None if gathered is None or spatial is None else spatial * gathered
    known = next(each for each in (gathered, spatial) if each is not None)
    return AttentionMaps(
        self_attention=_lengths(gathered),
        spatial=None if spatial is None else spatial[:, 0].cpu().numpy(),
        modulated=_lengths(both),
        size=(known.shape[2], known.shape[3]),
    )


@contextmanager
def _results(module: nn.Module | None) -> Iterator[list[Tensor]]:
    """What the module returns while the block runs."""
    seen: list[Tensor] = []
    if module is None:
        yield seen
        return
    hook = module.register_forward_hook(lambda module, inputs, output: seen.append(output))
    try:
        yield seen
    finally:
        hook.remove()


def _lengths(vectors: Tensor | None) -> np.ndarray | None:
    return None if vectors is None else vectors.norm(dim=1).cpu().numpy()
