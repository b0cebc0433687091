"""Which mistakes a network makes: the classes it confuses, and single images to look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.openset import SCORES
from oltr.runs.decisions import Decisions
from oltr.runs.outputs import OPEN


@dataclass(frozen=True, eq=False)
class ConfusedPairs:
    """P ordered pairs of known classes, the most confused first; four P int64 arrays."""

    labels: np.ndarray  # the true class
    predictions: np.ndarray  # the class it is taken for
    images: np.ndarray  # how often
    of: np.ndarray  # how many images the true class has


@dataclass(frozen=True, eq=False)
class Mistakes:
    """M images of one split, the worst first; arrays of length M."""

    title: str
    split: str  # "test" or "open"
    rows: np.ndarray  # int64, row numbers into that split
    labels: np.ndarray  # int64, -1 = open
    predictions: np.ndarray  # int64, -1 = unknown
    likeliest: np.ndarray  # int64, the prediction if nothing could be rejected
    confidence: np.ndarray  # float64, the softmax probability of the likeliest class
    values: np.ndarray  # float64, the score that decided, in its own units
    score: str


def confused_pairs(decisions: Decisions, most: int = 20) -> ConfusedPairs:
    """The known classes taken for another known class, by number of images, then by class number."""
    labels, predictions, classes = decisions.labels, decisions.predictions, decisions.num_classes
    wrong = (labels != OPEN) & (predictions != OPEN) & (labels != predictions)
    pairs, images = torch.unique(classes * labels[wrong] + predictions[wrong], return_counts=True)
    first = images.sort(descending=True, stable=True).indices[: _positive(most)]
    true = pairs[first] // classes
    of = torch.bincount(labels[labels != OPEN], minlength=classes)[true]
    return ConfusedPairs(true.numpy(), (pairs[first] % classes).numpy(), images[first].numpy(), of.numpy())


def confident_mistakes(decisions: Decisions, most: int = 20) -> Mistakes:
    """Test images given another known class, the most confident first."""
    labels, predictions = decisions.labels, decisions.predictions
    wrong = (labels != OPEN) & (predictions != OPEN) & (labels != predictions)
    return _worst("Most confident errors", "test", decisions, wrong, decisions.confidence, most)


def tail_taken_for_open(decisions: Decisions, groups: np.ndarray, most: int = 20) -> Mistakes:
    """Test images of few-shot classes called unknown, the least familiar by the score first."""
    wrong = _is_tail(decisions.labels, groups) & (decisions.predictions == OPEN)
    return _worst(
        "Few-shot images rejected as unknown", "test", decisions, wrong, -_familiar(decisions), most
    )


def open_taken_for_tail(decisions: Decisions, groups: np.ndarray, most: int = 20) -> Mistakes:
    """Open images given a few-shot class, the most familiar by the score first."""
    wrong = _is_tail(decisions.predictions, groups) & (decisions.labels == OPEN)
    return _worst(
        "Open images assigned to few-shot classes", "open", decisions, wrong, _familiar(decisions), most
    )


def _is_tail(classes: Tensor, groups: np.ndarray) -> Tensor:
    """Which of N class numbers are few-shot, by the shot group of each of K classes."""
    return torch.from_numpy(np.append(groups == "few", False))[classes]  # the last entry is that of -1


def _familiar(decisions: Decisions) -> Tensor:
    return decisions.values if SCORES[decisions.rule.score].higher_is_known else -decisions.values


def _worst(
    title: str, split: str, decisions: Decisions, wrong: Tensor, badness: Tensor, most: int
) -> Mistakes:
    """The images marked wrong, by falling badness, equal ones in the order of their rows."""
    found = wrong.nonzero().flatten()
    found = found[badness[found].sort(descending=True, stable=True).indices[: _positive(most)]]
    return Mistakes(
        title=title,
        split=split,
        rows=(found - decisions.test_images if split == "open" else found).numpy(),
        labels=decisions.labels[found].numpy(),
        predictions=decisions.predictions[found].numpy(),
        likeliest=decisions.likeliest[found].numpy(),
        confidence=decisions.confidence[found].numpy(),
        values=decisions.values[found].numpy(),
        score=decisions.rule.score,
    )


def _positive(most: int) -> int:
    if most < 1:
        raise UserError(f"At least one mistake must be asked for; got {most}.")
    return most
