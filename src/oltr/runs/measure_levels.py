"""How often the answers of each level are right, where classes have parents."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from oltr.errors import UserError
from oltr.openset.rollup import NONE, best_groups
from oltr.runs.decisions import check_finite
from oltr.runs.level_report import ByLevel, Given, Level
from oltr.runs.parents import UNKNOWN, Rollup
from oltr.runs.temperature import calibrated

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


def measure_levels(run: TrainedRun, rollup: Rollup) -> ByLevel:
    """Of the test and open images that the run is measured on, under its rejection rule."""
    parents, labels = rollup.parents, run.outputs["test"].labels
    known = labels != NONE
    truth = parents.lineage[labels.clamp(min=0)].masked_fill(~known[:, None], NONE)
    test = _Judged(run, rollup, "test", truth, known)
    unseen = _judged_open(run, rollup)
    best, _ = best_groups(calibrated(run, run.outputs["test"]), parents.lineage)
    levels = []
    for number, (name, threshold) in enumerate(zip(parents.levels, rollup.thresholds, strict=True)):
        hits = (best == truth)[truth[:, number] != NONE, number]
        opened = unseen.given(number) if unseen is not None else None
        usable = threshold if math.isfinite(threshold) else None
        levels.append(
            Level(name, len(parents.names[number]), usable, _share(hits), test.given(number), opened)
        )
    rest = unseen.given(NONE) if unseen is not None else None
    levels.append(Level(UNKNOWN, None, None, None, test.given(NONE), rest))
    answered = test.right[test.told & (test.level != NONE)]
    report = ByLevel(rollup.precision, levels, _share(answered))
    if unseen is None:
        return report
    within = (unseen.truth[:, 1:] != NONE).any(dim=1)
    return replace(report, open_labelled=int(unseen.told.sum()), open_within=int(within.sum()))


class _Judged:
    """The answers for the images of a split beside their true groups (N×L), as far as these are told (N)."""

    def __init__(self, run: TrainedRun, rollup: Rollup, split: str, truth: Tensor, told: Tensor):
        outputs, self.truth, self.told = run.outputs[split], truth, told
        check_finite([outputs])
        rejected = run.rule.rejects(run.scored(split).values)
        self.level, group, _ = rollup.roll_up(calibrated(run, outputs), rejected)
        own = truth.gather(1, self.level.clamp(min=0)[:, None])[:, 0]
        self.right = (self.level != NONE) & (group == own)

    def given(self, level: int) -> Given:
        here = self.level == level
        right = None if level == NONE else _share(self.right[here & self.told])
        return Given(int(here.sum()), float(here.double().mean()), right)


def _judged_open(run: TrainedRun, rollup: Rollup) -> _Judged | None:
    if run.unseen is None:
        return None
    try:
        labels = (run.other_data or run.manifest).rows("open")["label"].tolist()
    except UserError:  # the run's data are gone, and with them what the open images show
        labels = [""] * len(run.unseen)
    parents = rollup.parents
    told = torch.tensor([label in parents.height for label in labels])
    return _Judged(run, rollup, "open", parents.lineage_of(labels), told)


def _share(hits: Tensor) -> float | None:
    return float(hits.double().mean()) if len(hits) else None
