"""Small networks behind the direct feature in which views are compared; no part of a finished model."""

from __future__ import annotations

from torch import nn


def projector(dims: int, out: int = 128, hidden: int = 512) -> nn.Sequential:
    """Two layers with a batch norm between them: B×dims → B×out."""
    return nn.Sequential(
        nn.Linear(dims, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out)
    )
