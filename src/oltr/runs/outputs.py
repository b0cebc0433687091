"""What a trained network said about every image of one split, cached so that metrics rerun without images."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.metrics.labels import OPEN as OPEN


@dataclass(frozen=True, eq=False)
class Outputs:
    """One split's outputs, in manifest order: N images, K known classes, D feature dimensions."""

    logits: Tensor  # N×K float32
    labels: Tensor  # N int64, -1 = open
    features: Tensor  # N×D float32, the direct feature
    embeddings: Tensor | None = None  # N×D float32, the meta-embedding; None without a memory
    reachability: Tensor | None = None  # N float32, γ; None without a memory

    def __post_init__(self) -> None:
        for field in fields(self):
            tensor = getattr(self, field.name)
            if tensor is not None:
                dtype = torch.int64 if field.name == "labels" else torch.float32
                # Whatever precision or device the network ran in, what is cached is the same everywhere.
                object.__setattr__(self, field.name, tensor.detach().to("cpu", dtype).contiguous())
        images = len(self.labels) if self.labels.ndim == 1 else -1
        for name, dimensions in _DIMENSIONS.items():
            tensor = getattr(self, name)
            if tensor is not None and (tensor.ndim != dimensions or tensor.shape[0] != images):
                raise ValueError(_shape_message(name, tensor, self.labels))
        if images:
            least, most, last = int(self.labels.min()), int(self.labels.max()), self.logits.shape[1] - 1
            if least < OPEN or most > last:
                raise ValueError(f"labels must lie in -1..{last}, as the logits do; got {least}..{most}")

    def __len__(self) -> int:
        return len(self.labels)

    def probabilities(self) -> Tensor:
        """Softmax of the logits, N×K."""
        return self.logits.softmax(dim=1)

    def save(self, path: str | Path) -> None:
        """Write as safetensors; the file appears whole or not at all."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        with atomic_write(Path(path)) as part:
            part.write_bytes(save(tensors))

    @classmethod
    def load(cls, path: str | Path) -> Outputs:
        """Read what `save` wrote."""
        try:
            return cls(**load_file(path))
        except FileNotFoundError:
            raise UserError(f"There are no cached outputs at {path}.") from None
        except (SafetensorError, TypeError, ValueError) as error:
            raise UserError(f"The cached outputs {path} cannot be read.", str(error)) from error


_DIMENSIONS = {"labels": 1, "logits": 2, "features": 2, "embeddings": 2, "reachability": 1}


def _shape_message(name: str, tensor: Tensor, labels: Tensor) -> str:
    wanted = {"labels": "N", "reachability": "N", "logits": "N×K"}.get(name, "N×D")
    return f"{name} must be {wanted}; got {tuple(tensor.shape)} beside labels of shape {tuple(labels.shape)}"
