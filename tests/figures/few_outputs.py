"""Outputs of a few images, made up for the figures' tests."""

from __future__ import annotations

import io

import torch
from matplotlib.figure import Figure

from oltr.runs.outputs import Outputs

COUNTS = [200, 50, 50, 3]  # many, medium, medium, few


def split(images: int, seed: int, unseen: bool = False, classes: int = 4, memory: bool = True) -> Outputs:
    """Images of all classes in turn; logits in steps of ½, so that scores are often equal."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.full((images,), -1) if unseen else torch.arange(images) % classes
    logits = torch.randn(images, classes, generator=generator)
    if not unseen:
        logits[torch.arange(images), labels] += 1
    reachability = torch.rand(images, generator=generator) + unseen if memory else None
    return Outputs((2 * logits).round() / 2, labels, torch.zeros(images, 2), reachability=reachability)


def splits(test: int = 83, unseen: int = 31, **more) -> dict[str, Outputs]:
    """The three splits of a run; without open images two."""
    made = {"val": split(40, 0, **more), "test": split(test, 1, **more)}
    return made | ({"open": split(unseen, 2, unseen=True, **more)} if unseen else {})


def as_png(figure: Figure) -> bytes:
    """The figure as PNG; each of its axes is named, by itself, by another of its column or by the figure."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    for axes in filter(lambda axes: axes.axison, figure.axes):
        column = axes.get_shared_x_axes().get_siblings(axes)
        assert figure.get_supxlabel() or any(other.get_xlabel() for other in column)
        assert figure.get_supylabel() or axes.get_ylabel()
    assert file.getvalue().startswith(b"\x89PNG")
    return file.getvalue()
