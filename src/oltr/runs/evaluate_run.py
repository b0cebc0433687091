"""From a trained run to its report: outputs collected once, then metrics as often as wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oltr.config import RunConfig
from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.openset.threshold import check_choice
from oltr.recipes import load_recipe
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs
from oltr.runs.prepare_score import Prepared, named_score, prepared_score
from oltr.runs.read_outputs import outputs_on
from oltr.runs.report import Report
from oltr.runs.run_outputs import best_device, cached_outputs, collect, load_network, save_outputs
from oltr.training.run_folder import RunFolder

__all__ = [
    "Prepared",
    "best_device",
    "cached_outputs",
    "collect",
    "load_network",
    "make_report",
    "outputs_on",
    "prepared_score",
    "save_outputs",
]


def make_report(
    folder: RunFolder,
    outputs: Mapping[str, Outputs],
    score: str | Prepared | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    shots: str | None = None,
    manifest: Manifest | None = None,
    console: Console | None = None,
) -> Report:
    """The metrics of a run from its outputs; the method's own score unless another is named or prepared.

    `manifest` is where the outputs came from; without it, the source that the run was trained on.
    """
    run, config, classes = folder.run(), folder.config(), folder.classes()
    if not isinstance(score, Prepared):
        score = _ready(folder, score, outputs, threshold, unknown_rate, manifest, console)
    return evaluate(
        outputs,
        [entry["name"] for entry in classes],
        [entry["train_count"] for entry in classes],
        method=config.method,
        backbone=config.backbone,
        score=score.score,
        read=score.outputs,
        threshold=threshold,
        unknown_rate=unknown_rate,
        shots=shots or config.shots,
        train_seconds=run["train_seconds"],
        expect=_published(config),
    )


def _ready(
    folder: RunFolder,
    name: str | None,
    outputs: Mapping[str, Outputs],
    threshold: float | None,
    unknown_rate: float | None,
    manifest: Manifest | None,
    console: Console | None,
) -> Prepared:
    """The score prepared, if there is anything to decide by it."""
    score = named_score(folder, name)
    if not outputs.get("open") and threshold is None and unknown_rate is None:
        return Prepared(score, outputs)
    check_choice(score, threshold, unknown_rate)  # before images are read for hours
    return prepared_score(folder, score, outputs, manifest, console)


def _published(config: RunConfig) -> dict[str, Any] | None:
    try:
        return load_recipe(config.recipe).expect.get(config.method)
    except UserError:  # a recipe file of the user's own that is no longer there
        return None
