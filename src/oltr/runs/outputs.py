"""Outputs of a network for every image of one split, cached so that metrics rerun without images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.metrics.labels import OPEN
from oltr.openset import Score

__all__ = ["OPEN", "SPLITS", "Outputs", "Scored", "scored_by"]
SPLITS = ("val", "test", "open")  # of which a run keeps outputs


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

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """What a score reads: features, logits, reachability."""
        return self.features, self.logits, self.reachability

    def probabilities(self) -> Tensor:
        """Softmax of the logits, N×K."""
        return self.logits.softmax(dim=1)

    def subset(self, rows: np.ndarray) -> Outputs:
        """Some of the images, in that order."""
        return Outputs(**{name: tensor[rows] for name, tensor in self._tensors().items()})

    @classmethod
    def joined(cls, parts: Sequence[Outputs]) -> Outputs:
        """The images of several, one after another."""
        tensors = [part._tensors() for part in parts]
        return cls(**{name: torch.cat([each[name] for each in tensors]) for name in tensors[0]})

    def only(self, columns: Sequence[int]) -> Outputs:
        """The same with some of the classes alone: their logits in that order; images of others are open."""
        numbers = torch.full((self.logits.shape[1] + 1,), OPEN)  # the last is that of open images
        numbers[list(columns)] = torch.arange(len(columns))
        changed = {"logits": self.logits[:, list(columns)], "labels": numbers[self.labels]}
        return Outputs(**(self._tensors() | changed))

    def relabelled(self, numbers: Tensor) -> Outputs:
        """The same with label i replaced by numbers[i]."""
        return Outputs(**(self._tensors() | {"labels": numbers[self.labels]}))

    def save(self, path: str | Path) -> None:
        """Write as safetensors, atomically."""
        with atomic_write(Path(path)) as part:
            part.write_bytes(save(self._tensors()))

    @classmethod
    def load(cls, path: str | Path) -> Outputs:
        """Read what `save` wrote."""
        try:
            # Read, not mapped: a file that is replaced meanwhile must not change what was loaded.
            return cls(**load(Path(path).read_bytes()))
        except FileNotFoundError:
            raise UserError(f"There are no cached outputs at {path}.") from None
        except (SafetensorError, TypeError, ValueError) as error:
            raise UserError(f"The cached outputs {path} cannot be read.", str(error)) from error

    def _tensors(self) -> dict[str, Tensor]:
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in found.items() if tensor is not None}


class Scored(NamedTuple):
    """The score of every image of one split."""

    values: Tensor  # N float64, in the score's own units
    unknown: Tensor  # N float64, higher is more unknown


def scored_by(score: Score, outputs: Outputs) -> Scored:
    """A fitted score of outputs of the view that it reads."""
    return Scored(score.value(*outputs.inputs), score(*outputs.inputs))


_DIMENSIONS = {"labels": 1, "logits": 2, "features": 2, "embeddings": 2, "reachability": 1}


def _shape_message(name: str, tensor: Tensor, labels: Tensor) -> str:
    wanted = {"labels": "N", "reachability": "N", "logits": "N×K"}.get(name, "N×D")
    return f"{name} must be {wanted}; got {tuple(tensor.shape)} beside labels of shape {tuple(labels.shape)}"
