"""Outputs of a few images and runs of them, made up for the figures' tests."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from oltr.config import RunConfig
from oltr.errors import UserError
from oltr.openset import RejectionRule, Score
from oltr.runs.class_changes import fold
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun
from oltr.training.run_folder import RunFolder

COUNTS = [200, 50, 50, 3]  # many, medium, medium, few


def split(images: int, seed: int, unseen: bool = False, classes: int = 4, memory: bool = True) -> Outputs:
    """Images of all classes in turn; logits in steps of ½, so that scores are often equal."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.full((images,), -1) if unseen else torch.arange(images) % classes
    logits = torch.randn(images, classes, generator=generator)
    if not unseen:
        logits[torch.arange(images), labels] += 1
    reachability = torch.rand(images, generator=generator) + unseen if memory else None
    return Outputs((2 * logits).round() / 2, labels, torch.zeros(images, 2), reachability=reachability)


def splits(test: int = 83, unseen: int = 31, **more) -> dict[str, Outputs]:
    """The three splits of a run; without open images two."""
    made = {"val": split(40, 0, **more), "test": split(test, 1, **more)}
    return made | ({"open": split(unseen, 2, unseen=True, **more)} if unseen else {})


class MadeUpRun(TrainedRun):
    """A run without a folder: its outputs, training counts and rejection rule are given, its images gone."""

    def __init__(
        self,
        outputs: Mapping[str, Outputs],
        counts: Sequence[int] = COUNTS,
        rule: RejectionRule | float = 0.4,  # a threshold on the softmax
        name: str = "run",
        method: str = "focal",
        data: str = "one",
    ):
        self.path, self.name, self.folder = Path(name), name, RunFolder(name)
        self.facts = {"data": {"fingerprint": data}, "train_seconds": 12.0, "temperature": 2.0}
        self.config = RunConfig(method=method)
        self.counts = np.array(counts)
        self.class_names = [f"class {number}" for number in range(len(counts))]
        self.changes = fold(self.class_names, [])
        self.rule = RejectionRule("softmax", rule) if isinstance(rule, float) else rule
        self.given = dict(outputs)
        self.other_data, self._fitted, self._scored = None, {}, {}

    def _read_by(self, score: Score | None) -> Mapping[str, Outputs]:
        return self.given

    @property
    def manifest(self):
        raise UserError("They are needed.", "They are gone.")


def as_png(figure: Figure) -> bytes:
    """The figure as PNG; each of its axes is named, by itself, by another of its column or by the figure."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    for axes in filter(lambda axes: axes.axison, figure.axes):
        column = axes.get_shared_x_axes().get_siblings(axes)
        assert figure.get_supxlabel() or any(other.get_xlabel() for other in column)
        assert figure.get_supylabel() or axes.get_ylabel()
    assert file.getvalue().startswith(b"\x89PNG")
    return file.getvalue()
