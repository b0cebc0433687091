"""Which visual concepts the memory infuses into an image: the largest entries of e ⊗ v_memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oltr.errors import UserError
from oltr.nn.heads import Output
from oltr.runs.explain.activations import Activations

WIDTH, MOST = 2.0, 0.75  # a patch is so many cells of the map wide, but at most this share of the image


@dataclass(frozen=True, eq=False)
class Infused:
    """The T neurons of N images into which the memory infuses most, the largest first; N×T each."""

    neurons: np.ndarray  # int64, entries of v_direct
    amounts: np.ndarray  # float32, of e ⊗ v_memory (v_memory without a concept selector)
    direct: np.ndarray  # float32, of v_direct, to which the amount is added


@dataclass(frozen=True, eq=False)
class Boxes:
    """Where in its strongest images a neuron answers most: k images and a square in each."""

    images: np.ndarray  # k int64, numbers as in `Activations`
    corners: np.ndarray  # k×2 int64, left and top of the square in pixels
    side: int  # of the square; the image's own where the place is not known
    whole: bool  # whether whole images stand for the neuron


@dataclass(frozen=True, eq=False)
class Concepts:
    """What was infused into N images, and what each of these neurons looks for."""

    infused: Infused
    patches: Mapping[int, np.ndarray]  # neuron → k×p×p×3 uint8, the strongest first; empty: see `missing`
    whole: bool  # whole images: where in them the neuron answers is not known
    looked_at: str = ""  # among which images the strongest were found
    missing: str = ""  # why there are no patches


def infused(output: Output, top: int = 3) -> Infused:
    """The `top` neurons of each image of a batch: argmax of e ⊗ v_memory, B×D → B×T."""
    if output.memory_feature is None:
        raise UserError(
            "This network infuses nothing from a memory.",
            "Its method or its settings have no memory feature.",
            "a run of oltr or oltr-paper",
        )
    selector = output.concept_selector
    given = output.memory_feature if selector is None else selector * output.memory_feature
    amounts, neurons = given.float().topk(min(top, given.shape[1]), dim=1)
    direct = output.direct_feature.float().gather(1, neurons)
    return Infused(neurons.cpu().numpy(), amounts.cpu().numpy(), direct.cpu().numpy())


def boxes(found: Activations, neuron: int, side: int) -> Boxes:
    """The squares around the map cells at which the neuron is strongest, in images of side × side pixels.

    A square is two cells wide, at most three quarters of the image, and moved inside it at the border.
    """
    images = found.peak_images[neuron].numpy()
    if found.peak_cells is None:
        return Boxes(images, np.zeros((len(images), 2), dtype=np.int64), side, whole=True)
    height, width = found.map_size
    patch = round(min(WIDTH * side / min(height, width), MOST * side))
    rows, columns = np.divmod(found.peak_cells[neuron].numpy(), width)
    centres = np.stack([(columns + 0.5) * side / width, (rows + 0.5) * side / height], axis=1)
    corners = np.rint(centres - patch / 2).clip(0, side - patch).astype(np.int64)
    return Boxes(images, corners, patch, whole=False)


def cut(pictures: np.ndarray, squares: Boxes) -> np.ndarray:
    """The patches of k pictures: k×s×s×3 → k×p×p×3."""
    side = squares.side
    patches = [
        picture[top : top + side, left : left + side]
        for picture, (left, top) in zip(pictures, squares.corners, strict=True)
    ]
    return np.stack(patches)
