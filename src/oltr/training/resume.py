"""Where a run starts: from nothing, from its own checkpoint, or from the first stage of another run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from oltr.config import RunConfig
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.methods import Method
from oltr.training.build import build_method
from oltr.training.metrics_file import read_metrics
from oltr.training.options import TrainOptions
from oltr.training.run_folder import (
    RunFolder,
    data_identity,
    differences,
    plain_values,
    teacher_identity,
)

# What runs must have in common to share a stage 1, besides their method's first stage and the images.
STAGE1_SETTINGS = (
    *("backbone", "weights", "train_backbone", "data", "stage1", "distill"),
    *("keep", "precision", "seed"),
)


@dataclass
class Start:
    """The first stage to train, and what was trained before."""

    stage: int = 1
    weights: dict[str, Tensor] | None = None  # of the finished stage before it
    checkpoint: dict[str, Any] | None = None  # of the last finished epoch of `stage`
    history: list[dict[str, Any]] = field(default_factory=list)  # a row for each finished epoch
    eval_size: int | None = None  # that was chosen


def find_start(
    folder: RunFolder, config: RunConfig, method: Method, manifest: Manifest, options: TrainOptions
) -> Start:
    """What need not be trained: done earlier in this folder, or in the run that stage 1 is shared with."""
    saved = folder.load_checkpoint() if options.resume and folder.last.is_file() else None
    finished = in_checkpoint = saved["stage"] - 1 if saved else 0
    while options.resume and folder.stage_weights(finished + 1).is_file():
        finished += 1
    if not finished and options.stage1_from is not None:
        return _shared_stage1(RunFolder(options.stage1_from), config, method, manifest)
    history = saved["history"] if saved else []
    if finished == in_checkpoint:
        return Start(finished + 1, None, saved, history)
    # A stage that is fitted writes no checkpoint.
    by_steps = saved["stage"] if saved else 0
    history += [row for row in read_metrics(folder.metrics) if by_steps < row["stage"] <= finished]
    return Start(finished + 1, folder.load_weights(folder.stage_weights(finished)), None, history)


def _shared_stage1(other: RunFolder, config: RunConfig, method: Method, manifest: Manifest) -> Start:
    """The finished stage 1 of another run, if it is what this run would have trained.

    Where it is the only one, there is left what follows training: τ-norm, the memory of `oltr2`, the rule.
    """
    if config.head_only:
        raise UserError(
            f"{config.method} has no stage 1 here that could be taken from {other.path}.",
            "Only a head is trained, on a frozen backbone.",
            "leave out --stage1-from",
        )
    theirs = other.config()
    wrong = differences(_stage1_settings(theirs), _stage1_settings(config))
    kind = build_method(theirs, method.train_counts).first_stage
    if kind != method.first_stage:
        wrong.append(f"the method's first stage: {kind} → {method.first_stage}")
    if other.run()["data"] != data_identity(manifest):
        wrong.append("the images")
    if other.run().get("teacher") != teacher_identity(config):
        wrong.append("the teacher's weights")
    if wrong:
        raise UserError(
            f"Stage 1 of {other.path} cannot be shared, for this run differs from it:",
            "\n".join(f"  {line}" for line in wrong),
            "the settings and images of that run, or no --stage1-from",
        )
    if not other.stage_weights(1).is_file():
        raise UserError(f"Stage 1 of {other.path} is not finished.", try_this="finish it with --resume")
    # A head that was fitted has no checkpoint.
    history = other.load_checkpoint()["history"] if other.last.is_file() else read_metrics(other.metrics)
    history = [row for row in history if row["stage"] == 1]
    return Start(2, other.load_weights(other.stage_weights(1)), None, history)


def _stage1_settings(config: RunConfig) -> dict[str, Any]:
    every = plain_values(dataclasses.asdict(config))
    every["data"].pop("eval_size_by")  # for what is done with it
    return {name: every[name] for name in STAGE1_SETTINGS}
