"""A GPU that is not there: torch's fake tensors, which have shapes, types and devices and no values."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from oltr.training import precision

FUSED = ("_fused_sgd_", "_fused_adamw_")  # in place, and torch has no fake version of them


class NotRecordable(RuntimeError):
    """A CUDA graph could not record this."""


class FakeGPU(FakeTensorMode):
    """Fake tensors, whose copies belong to the same mode."""

    def __deepcopy__(self, memo: Any) -> FakeGPU:
        return self


class OnDeviceAlone(TorchDispatchMode):
    """Refuses what a CUDA graph cannot record and fake tensors let pass.

    Fake tensors themselves refuse a value on the host (`item`) and a shape that depends on values
    (`nonzero`). Here: any tensor on the host, copied to the device too; masks as indices; other random
    generators than the device's own; decompositions, which ask the device whether they succeeded.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        _refuse_host(name, (args, kwargs))
        if kwargs.get("generator") is not None:
            raise NotRecordable(f"{name} with a generator of its own")
        if name.startswith("linalg_") and name != "linalg_vector_norm":
            raise NotRecordable(f"{name} asks the device whether it succeeded")
        indices = args[1] if name in ("index", "index_put", "index_put_") else ()
        if any(index is not None and index.dtype == torch.bool for index in indices):
            raise NotRecordable(f"{name} with a mask")
        if name in FUSED:
            return None
        result = func(*args, **kwargs)
        _refuse_host(name, result)
        return result


def _refuse_host(name: str, values: Any) -> None:
    if any(isinstance(leaf, Tensor) and leaf.device.type == "cpu" for leaf in tree_leaves(values)):
        raise NotRecordable(f"{name} with a tensor on the host")


def pretend_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let autocast believe in a GPU with bfloat16; for meta tensors there is no autocast."""
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *args, **options: True)
    monkeypatch.setattr(precision, "_asked_once", lambda: True)
    autocast = torch.autocast
    monkeypatch.setattr(
        torch,
        "autocast",
        lambda device, *args, **options: (
            nullcontext() if device == "meta" else autocast(device, *args, **options)
        ),
    )


def fake(tensor: Tensor, device: str) -> Tensor:
    """A fake tensor of the same shape and layout; inside the mode."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
