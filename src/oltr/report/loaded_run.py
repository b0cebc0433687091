"""What figures and pages read of a finished run: its outputs, its classes and its rule for unknown images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from oltr.errors import UserError
from oltr.metrics.accuracy import mean, per_class_accuracy
from oltr.openset import Score
from oltr.runs.decisions import Decisions, decide
from oltr.runs.outputs import Outputs

if TYPE_CHECKING:
    from oltr.data.manifest import Manifest
    from oltr.report.run_network import RunNetwork


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run of K classes under the name that tells it from others; its network waits to be asked for."""

    name: str
    folder: Path
    method: str
    class_names: Sequence[str]  # K
    counts: np.ndarray  # K int64, training images
    shots: str  # the rule of the shot groups
    outputs: Mapping[str, Outputs]  # test; val and open where there are such images
    score: Score
    threshold: float | None  # None: nothing is called unknown
    read: Mapping[str, Outputs]  # what the score reads; for most scores the outputs themselves
    data: Manifest | UserError  # the run's own images, or why they cannot be had any more

    @cached_property
    def unseen(self) -> Outputs | None:
        """The outputs of the open images; None if there are none."""
        return self.outputs.get("open") or None

    @cached_property
    def accuracy(self) -> float | None:
        """Closed-set accuracy, mean over classes; None if no class has test images."""
        test = self.outputs["test"]
        return mean(per_class_accuracy(test.logits.argmax(dim=1), test.labels, test.logits.shape[1]))

    @cached_property
    def decisions(self) -> Decisions:
        """What the run makes of its test and open images."""
        read = [self.read["test"]] if self.unseen is None else [self.read["test"], self.read["open"]]
        return decide(
            self.outputs["test"], self.unseen, score=self.score, threshold=self.threshold, read=read
        )

    @cached_property
    def opened(self) -> RunNetwork:
        """Its network and what that is shown, once for all figures."""
        from oltr.console import Console
        from oltr.report.run_network import RunNetwork
        from oltr.training.run_folder import RunFolder

        return RunNetwork(RunFolder(self.folder), Console(quiet=True))

    def manifest(self) -> Manifest:
        """The run's own data; refused where they are gone or do not fit its outputs."""
        if isinstance(self.data, UserError):
            raise self.data
        for split in ("test", "open"):
            images = len(self.outputs[split]) if split in self.outputs else 0
            if self.data.sizes()[split] != images:
                raise UserError(
                    f"{self.name} has outputs of {images:,} {split} images, "
                    f"its data {self.data.sizes()[split]:,}.",
                    try_this="training the run again",
                )
        return self.data
