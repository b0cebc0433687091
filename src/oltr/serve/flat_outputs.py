"""A network's outputs for one image as a row of numbers, and rows as outputs again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from oltr.runs.outputs import OPEN, Outputs


def to_rows(views: Sequence[Outputs]) -> np.ndarray:
    """N images: for each view features D, logits K and, where there is a memory, reachability 1 → N×R."""
    parts = []
    for view in views:
        parts += [view.features, view.logits]
        parts += [] if view.reachability is None else [view.reachability[:, None]]
    return torch.cat(parts, dim=1).numpy()


def from_rows(rows: np.ndarray, features: int, classes: int, views: int) -> list[Outputs]:
    """What `to_rows` was given, without embeddings, which no answer depends on."""
    found = []
    for part in np.split(rows, views, axis=1):
        feature, logits, rest = np.split(part, [features, features + classes], axis=1)
        reachability = torch.from_numpy(rest[:, 0]) if rest.shape[1] else None
        labels = torch.full((len(rows),), OPEN)
        found.append(Outputs(torch.from_numpy(logits), labels, torch.from_numpy(feature), None, reachability))
    return found
