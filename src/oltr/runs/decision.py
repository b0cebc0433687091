"""By which score and threshold a run calls images unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.openset import Score
from oltr.openset.threshold import check_choice, settle_threshold
from oltr.runs.outputs import Outputs
from oltr.runs.prepare_score import named_score, prepared_score
from oltr.runs.run_outputs import kept_outputs
from oltr.training.run_folder import RunFolder

UNKNOWN_RATE = 0.05  # of a run that was saved without a choice


class Decision(NamedTuple):
    """A score ready for use, and its threshold."""

    score: Score
    threshold: float
    unknown_rate: float | None  # that the threshold meets on validation images; None: it was given, or fixed


def settle_decision(
    folder: RunFolder,
    console: Console,
    score: str | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    manifest: Manifest | None = None,
) -> Decision:
    """What is given; else what the run was saved with; else an unknown rate of 5 %, where there are
    validation outputs to meet it on."""
    saved = folder.run().get("decision", {})
    outputs = kept_outputs(folder, ["val"]) if threshold is None else {}
    if threshold is None and unknown_rate is None and outputs.get("val"):
        unknown_rate = saved.get("unknown_rate", UNKNOWN_RATE)
    name = score or saved.get("score")
    return decide_by(folder, name, threshold, unknown_rate, outputs, console, manifest)


def decide_by(
    folder: RunFolder,
    score: str | None,
    threshold: float | None,
    unknown_rate: float | None,
    outputs: Mapping[str, Outputs],
    console: Console,
    manifest: Manifest | None = None,
) -> Decision:
    """The score of that name, or the method's own, and the threshold that these wishes lead to."""
    check_choice(named_score(folder, score), threshold, unknown_rate)  # before images are read for hours
    chosen, read = prepared_score(folder, score, outputs, manifest, console)
    line = settle_threshold(chosen, read.get("val"), threshold, unknown_rate)
    return Decision(chosen, line, unknown_rate)
