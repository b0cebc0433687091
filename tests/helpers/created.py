"""The sizes of all tensors that a piece of code makes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Created(TorchDispatchMode):
    """Collects, while it is entered, the shape of every tensor that is no view of what it was made from."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        result = function(*args, **kwargs)
        for made in tree_leaves(result):
            if isinstance(made, Tensor) and made.untyped_storage().data_ptr() not in given:
                self.shapes.append(tuple(made.shape))
        return result

    def above(self, elements: int) -> list[tuple[int, ...]]:
        """The shapes with more elements than that."""
        return [shape for shape in self.shapes if torch.Size(shape).numel() > elements]
