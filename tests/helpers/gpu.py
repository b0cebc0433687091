"""Tests that need a GPU: marked, so that `pytest -m gpu` runs them alone, and skipped where there is none."""

from __future__ import annotations

import pytest
import torch

_skipped = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


# Relative, between outputs of batches of different size: a GPU computes them in bfloat16.
ACROSS_BATCHES = 1e-2 if torch.cuda.is_available() else 1e-4


def needs_gpu(test):
    return pytest.mark.gpu(_skipped(test))
