"""The precision in which a network runs."""

from __future__ import annotations

import torch


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bfloat16 on a GPU unless float32 was asked for; on a CPU only where it was.

    Weights are cast anew each time: a step that is replayed as a CUDA graph must not reuse older ones.
    """
    low = precision == "bfloat16" or (precision == "auto" and device.type == "cuda")
    return torch.autocast(device.type, torch.bfloat16, enabled=low, cache_enabled=False)
