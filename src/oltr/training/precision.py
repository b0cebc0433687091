"""The precision in which a network runs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bfloat16 on a GPU that has it unless float32 was asked for; elsewhere only where it was itself.

    Weights are cast anew each time: a step that is replayed as a CUDA graph must not reuse older ones.
    """
    low = precision == "bfloat16" or (precision == "auto" and device.type == "cuda" and _gpu_has_bfloat16())
    return torch.autocast(device.type, torch.bfloat16, enabled=low, cache_enabled=False)


def cpu_has_bfloat16() -> bool:
    """Whether the CPU multiplies in bfloat16 itself; older versions of torch do not know."""
    known: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


@torch.compiler.assume_constant_result  # the compiler asks and does not look inside: a step stays one graph
def _gpu_has_bfloat16() -> bool:
    return _asked_once()


@functools.cache
def _asked_once() -> bool:
    """Whether the GPU computes in bfloat16 itself, not by emulation."""
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))
