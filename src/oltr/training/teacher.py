"""A finished run whose answers another run learns from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from oltr.config import DataConfig, DistillConfig, RunConfig, build
from oltr.console import console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.losses.distillation import distillation_loss
from oltr.nn.network import Network
from oltr.training.load_network import load_network
from oltr.training.run_folder import RunFolder, differences

_SEEN = ("image_size", "stored_size", "resize", "interpolation", "mean", "std")  # how a view is made
_OTHER = "another teacher"


class Teacher:
    """The network of a finished run as it was saved: views (N×3×S×S) → logits (N×K), without a gradient.

    It is no module, so that no student has it among its weights, and neither an optimiser, a checkpoint nor
    DDP sees it. One plain pass: a shift of its logits is part of its head, the mirror image of test_flip and
    what was done to its classes since training are not. `order` gives the student's classes in its numbers.
    """

    def __init__(self, network: Network, config: DistillConfig, order: Sequence[int] | None = None):
        self.network, self.config = network.eval().requires_grad_(False), config
        self.network.backbone.mirrors = False
        self.order = None if order is None else torch.tensor(order)

    def to(self, device: torch.device) -> Teacher:
        self.network.to(device).to(memory_format=torch.channels_last)
        self.order = None if self.order is None else self.order.to(device)
        return self

    @torch.no_grad()
    def __call__(self, views: Tensor) -> Tensor:
        logits = self.network(views).logits
        return logits if self.order is None else logits[:, self.order]

    def share(self, losses: list[Tensor], logits: Tensor, taught: Tensor) -> list[Tensor]:
        """(1 − share) · each term of the loss, and share · the distillation loss: N×K logits, N×K taught."""
        share = self.config.share
        distance = distillation_loss(logits, taught, self.config.temperature)
        return [*((1 - share) * loss for loss in losses), share * distance]

    def __str__(self) -> str:
        c = self.config
        return f"teacher {c.teacher} (share {c.share:g}, temperature {c.temperature:g})"


def load_teacher(config: RunConfig, manifest: Manifest) -> Teacher | None:
    """The run's teacher, if it has one; one that cannot teach it is refused."""
    if config.distill.teacher is None:
        return None
    folder = RunFolder(config.distill.teacher)
    facts, classes = folder.finished_run(), folder.classes()
    theirs = build(RunConfig, facts["config"])
    _check_views(folder, theirs.data, config.data)
    order = _order(folder, [entry["name"] for entry in classes], manifest.classes)
    if facts["data"].get("fingerprint") != manifest.fingerprint():
        console.warn(
            f"the teacher {folder.path} was trained on other images; if test images of this run are among "
            "them, its results are too good"
        )
    counts = torch.tensor([entry["train_count"] for entry in classes], dtype=torch.int64)
    # It sees images that its class means are made of: beside those it would teach hard labels.
    teacher = Teacher(load_network(folder, theirs, counts, memory=False), config.distill, order)
    size = config.data.image_size
    if not bool(teacher(torch.zeros(1, 3, size, size)).isfinite().all()):
        raise UserError(f"The teacher {folder.path} answers with NaN or infinite logits.", try_this=_OTHER)
    return teacher


def _check_views(folder: RunFolder, theirs: DataConfig, ours: DataConfig) -> None:
    """Refuse a teacher that would see other pictures than those it was trained on."""
    if wrong := differences(_as_seen(theirs), _as_seen(ours), "data."):
        raise UserError(
            f"The teacher {folder.path} was trained on other views than this run's:",
            "\n".join(f"  {line}" for line in wrong),
            f"the teacher's settings by --set, or {_OTHER}",
        )


def _as_seen(data: DataConfig) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(data).items() if name in _SEEN}


def _order(folder: RunFolder, theirs: Sequence[str], ours: Sequence[str]) -> list[int] | None:
    """The number that the teacher has for each class of the source; None where its order is the same."""
    missing, further = _some(set(ours) - set(theirs)), _some(set(theirs) - set(ours))
    if missing or further:
        parts = (("It does not know", missing), ("Only it knows", further))
        why = " ".join(f"{words} {names}." for words, names in parts if names)
        hint = f"{_OTHER}, trained on these classes"
        raise UserError(f"The teacher {folder.path} has other classes than the source.", why, hint)
    numbers = {name: number for number, name in enumerate(theirs)}
    return None if list(theirs) == list(ours) else [numbers[name] for name in ours]


def _some(names: set[str]) -> str:
    """The first few names, and how many more there are."""
    first = sorted(names)[:3]
    return ", ".join(first) + (f" and {len(names) - len(first)} more" if len(names) > len(first) else "")
