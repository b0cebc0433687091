"""A network's outputs for one image as a row of numbers, and rows as outputs again."""

from __future__ import annotations

import numpy as np
import torch

from oltr.runs.outputs import OPEN, Outputs


def to_rows(outputs: Outputs) -> np.ndarray:
    """N images: features D, logits K and, where there is a memory, reachability 1 → N×R."""
    last = [] if outputs.reachability is None else [outputs.reachability[:, None]]
    return torch.cat([outputs.features, outputs.logits, *last], dim=1).numpy()


def from_rows(rows: np.ndarray, features: int, classes: int) -> Outputs:
    """What `to_rows` was given, without embeddings, which no answer depends on."""
    feature, logits, last = map(torch.from_numpy, np.split(rows, [features, features + classes], axis=1))
    return Outputs(
        logits, torch.full((len(rows),), OPEN), feature, None, last[:, 0] if last.shape[1] else None
    )
