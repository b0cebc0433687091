"""The label that stands for no known class."""

from __future__ import annotations

OPEN = -1  # an image whose class was not in the training set, or a prediction "unknown"
