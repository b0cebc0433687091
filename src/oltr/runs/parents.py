"""Answers by a parent (genus, family, part group) where the class is unsure but its parent is not."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from oltr.console import console
from oltr.data.parent_table import ancestors, heights, read_parent_table
from oltr.errors import UserError
from oltr.openset.rollup import NONE, Answers, check_precision, fit_thresholds, roll_up
from oltr.runs.decisions import check_finite
from oltr.runs.outputs import OPEN
from oltr.runs.temperature import calibrated
from oltr.wording import count, first_few

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

CLASS, UNKNOWN = "class", "unknown"
PRECISION = 0.95  # of the answers at each level, unless another is asked for


class RolledUp(NamedTuple):
    """What is said of one image."""

    answer: str  # a class, a parent or "unknown"
    level: str  # "class", then "1" for parents, "2" for theirs and so on, or "unknown"
    probability: float | None  # calibrated, of a parent summed over its classes; None for unknown


class Parents:
    """The classes of a run below their parents.

    A parent's level is the longest way down from it in the table: that of a family is 2 if any genus is named
    in it, also for a class that stands directly below the family.
    """

    def __init__(self, above: dict[str, str], class_names: Sequence[str]):
        self.above, self.height = above, heights(above)  # label → parent; labels need not be classes
        lines = [self._line(name) for name in class_names]
        self._used = sorted({height for line in lines for height in line})
        # The names of the groups by level; level 0 holds the classes.
        self.names = [list(dict.fromkeys(line[h] for line in lines if h in line)) for h in self._used]
        self.levels = [CLASS, *(str(level) for level in range(1, len(self.names)))]

    @cached_property
    def lineage(self) -> Tensor:
        """The group of each class at each level, K×L int64, −1 for none."""
        return self.lineage_of(self.names[0])

    def lineage_of(self, labels: Sequence[str]) -> Tensor:
        """The same of any labels, N×L; −1 also for groups in which the run has no class."""
        numbers = [{name: number for number, name in enumerate(names)} for names in self.names]
        levels = list(zip(self._used, numbers, strict=True))
        lines = {label: self._line(label) for label in set(labels)}
        rows = {
            label: [known.get(line.get(height, ""), NONE) for height, known in levels]
            for label, line in lines.items()
        }
        return torch.tensor([rows[label] for label in labels], dtype=torch.int64).reshape(-1, len(self._used))

    def _line(self, label: str) -> dict[int, str]:
        """Height → name: the label, once more if it is a parent too ("a cat, whichever"), its ancestors."""
        above = ancestors(label, self.above)
        return {0: label} | {self.height[name]: name for name in (label, *above) if self.height.get(name)}


def read_parents(path: str | Path, class_names: Sequence[str]) -> Parents:
    """A table `label,parent` over the classes of a run; says what of it the run does not know."""
    above, classes = read_parent_table(path), set(class_names)
    named_parents = set(above.values())
    orphans = [name for name in class_names if name not in above and name not in named_parents]
    if not classes & above.keys():
        raise UserError(
            f"{path} has a parent for none of the run's classes.",
            f"It has: {first_few(above)}. The classes: {first_few(class_names)}.",
            "the names of the classes as the run has them",
        )
    if orphans:
        verb = "has" if len(orphans) == 1 else "have"
        console.say(f"{count(len(orphans), 'class')} {verb} no parent in {path}: {first_few(orphans)}")
    strangers = [name for name in above if name not in classes and name not in named_parents]
    # A name that nearly is one without a row of its own is probably meant to be that row.
    rowless = sorted((classes | named_parents) - above.keys())
    for name in strangers:
        for meant in difflib.get_close_matches(name, rowless, n=1, cutoff=0.8):
            hint = f"did you mean {meant!r}, which has no parent?"
            console.warn(f"{path}: {name!r} is no class of the run; {hint}")
    return Parents(above, class_names)


@dataclass(frozen=True, eq=False)
class Rollup:
    """At which probability each level answers, so that its answers are right at least that often."""

    parents: Parents
    thresholds: list[float]  # by level; infinite for one that answers nothing
    precision: float

    def roll_up(self, probabilities: Tensor, rejected: Tensor) -> Answers:
        """Level, group and probability as tensors, of N×K calibrated probabilities and N bool."""
        return roll_up(probabilities, self.parents.lineage, self.thresholds, rejected)

    def answers(self, probabilities: Tensor, rejected: Tensor) -> list[RolledUp]:
        """The answer for each image; those that the run's rule rejects get no class, but may get a parent."""
        found = self.roll_up(probabilities, rejected)
        names, levels = self.parents.names, self.parents.levels
        return [
            RolledUp(UNKNOWN, UNKNOWN, None)
            if level == NONE
            else RolledUp(names[level][group], levels[level], probability)
            for level, group, probability in zip(*(part.tolist() for part in found), strict=True)
        ]


def fit_rollup(run: TrainedRun, parents: Parents | str | Path, precision: float = PRECISION) -> Rollup:
    """The thresholds that keep the precision on validation images, under the run's rejection rule.

    `parents` may be the path of a table `label,parent`.
    """
    check_precision(precision)
    if not isinstance(parents, Parents):
        parents = read_parents(parents, run.class_names)
    known = run.outputs["val"].labels != OPEN if "val" in run.outputs else torch.zeros(0, dtype=torch.bool)
    if not known.any():
        raise UserError(
            "There are no validation images.",
            "How often the answers of a level are right is measured on them.",
            "a run trained on data with a val split",
        )
    val = run.outputs["val"]
    check_finite([val])
    rejected = run.rule.rejects(run.scored("val").values)
    thresholds = fit_thresholds(
        calibrated(run, val)[known], val.labels[known], parents.lineage, precision, rejected[known]
    )
    for level, threshold in zip(parents.levels, thresholds, strict=True):
        if math.isinf(threshold):
            what = "no class" if level == CLASS else f"no parent of level {level}"
            console.say(f"{what} is answered: {precision:.0%} right cannot be kept on the validation images")
    return Rollup(parents, thresholds, precision)
