"""To which images each neuron of the direct feature answers most and least, in one pass over many images."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.nn.network import Network


@dataclass(frozen=True, eq=False)
class Activations:
    """For each of D neurons numbers of images, as they came; the strongest (or weakest) first."""

    peaks: Tensor  # D×k float32, the neuron's highest value at one position of the map, else v_direct's entry
    peak_images: Tensor  # D×k int64
    peak_cells: Tensor | None  # D×k int64, row · W + column; None: there is no map
    most: Tensor  # D×n int64, by the neuron's entry in v_direct
    least: Tensor  # D×n int64
    map_size: tuple[int, int]  # H, W
    images: int  # how many were looked at


@torch.inference_mode()
def activations(
    network: Network, batches: Iterable[Tensor], keep: int = 9, extremes: int = 50
) -> Activations:
    """The `keep` images with the highest peak and the `extremes` most and least active ones, of each neuron.

    Of images that tie, the earlier ones stay: give them in a random order. Never more than one batch and
    D × (keep + 2 extremes) numbers are held.
    """
    network.eval()
    maps: list[Tensor] = []
    hook = network.direct_feature.register_forward_pre_hook(lambda module, inputs: maps.append(inputs[0]))
    peaks, most, least = _Largest(keep), _Largest(extremes), _Largest(extremes)
    images, size, located = 0, (1, 1), False
    try:
        for views in batches:
            direct, f = network.embed(views).float(), maps.pop().float()  # B×D, B×C×H×W
            size = (f.shape[2], f.shape[3])
            located = min(size) > 1
            numbers = torch.arange(images, images + len(direct), device=direct.device).expand(direct.T.shape)
            if located:
                with torch.autocast(f.device.type, enabled=False):
                    values = network.direct_feature.by_position(f)  # B×D×H×W
                height, cells = values.flatten(2).max(dim=2)
                peaks.add(height.T, numbers, cells.T)
            else:
                peaks.add(direct.T, numbers)
            most.add(direct.T, numbers)
            least.add(-direct.T, numbers)
            images += len(direct)
    finally:
        hook.remove()
    if not images:
        raise UserError("There are no images whose activations could be looked at.")
    return Activations(
        peaks.values.cpu(),
        peaks.others[0].cpu(),
        peaks.others[1].cpu() if located else None,
        most.others[0].cpu(),
        least.others[0].cpu(),
        size,
        images,
    )


class _Largest:
    """The k largest values of each row so far, and what came with them: D×k each."""

    def __init__(self, keep: int):
        self.keep = keep
        self.values: Tensor
        self.others: tuple[Tensor, ...] = ()

    def add(self, values: Tensor, *others: Tensor) -> None:
        """Values D×B and companions of the same shape, of which the largest so far stay."""
        if self.others:
            values = torch.cat([self.values, values], dim=1)
            others = tuple(torch.cat(pair, dim=1) for pair in zip(self.others, others, strict=True))
        self.values, order = values.sort(dim=1, descending=True, stable=True)
        order = order[:, : self.keep]
        self.values = self.values[:, : self.keep]
        self.others = tuple(other.gather(1, order) for other in others)
