"""Made-up outputs of a network that tells its classes apart, and of images of no class."""

from __future__ import annotations

import torch
from torch import Tensor

from oltr.openset import SCORES, Score
from oltr.runs.outputs import Outputs


def outputs(logits: Tensor, labels: Tensor | None = None, features: Tensor | None = None) -> Outputs:
    """Outputs of which some parts do not matter."""
    labels = torch.zeros(len(logits)) if labels is None else labels
    return Outputs(logits, labels, torch.zeros(len(logits), 2) if features is None else features)


def separable(counts: list[int], seed: int, dims: int = 12, height: float = 10.0) -> Outputs:
    """Classes far apart: logits of `height` for the right class and noise, features around class centres."""
    random = torch.Generator().manual_seed(seed)
    centres = 5 * torch.randn(len(counts), dims, generator=torch.Generator().manual_seed(7))
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    logits = torch.randn(len(labels), len(counts), generator=random)
    logits[torch.arange(len(labels)), labels] += height
    return Outputs(logits, labels, centres[labels] + torch.randn(len(labels), dims, generator=random))


def strangers(images: int, classes: int, seed: int, dims: int = 12) -> Outputs:
    """Images of no class: low logits, features anywhere."""
    random = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(images, classes, generator=random)
    features = 5 * torch.randn(images, dims, generator=random)
    return Outputs(logits, torch.full((images,), -1), features)


def row(whole: Outputs, number: int) -> Outputs:
    """One image alone."""
    one = slice(number, number + 1)
    return Outputs(whole.logits[one], whole.labels[one], whole.features[one])


def fitted(name: str, training: Outputs) -> Score:
    """The score of that name, having seen the training images."""
    return SCORES[name]().fit(training.features, training.logits, training.labels)
