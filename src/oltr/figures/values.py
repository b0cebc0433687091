"""Numbers of runs and words for them that several figures share."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from oltr.openset import SCORES
from oltr.runs.decisions import check_finite
from oltr.runs.explain.score_place import finite_values
from oltr.runs.trained_run import TrainedRun


def right_answers(run: TrainedRun) -> np.ndarray:
    """Whether the largest logit of each test image is that of its class, N bool."""
    test = run.outputs["test"]
    check_finite([test])
    return (test.logits.argmax(dim=1) == test.labels).numpy()


def unknown_values(run: TrainedRun, split: str) -> np.ndarray:
    """The run's score of each image of a split, turned so that higher is more unknown, N float64."""
    values = finite_values(run, split)
    return -values if SCORES[run.rule.score].higher_is_known else values


NAMES = ("Mahalanobis",)


def score_name(score: str) -> str:
    """The score as the name of an axis."""
    if score == "reachability":
        return "reachability γ (feature distance to the nearest centroid)"
    return " + ".join(map(_within_a_line, SCORES[score].info.title.split(" + ")))


def _within_a_line(title: str) -> str:
    """Without a capital, unless the first word is a name or an abbreviation."""
    first = re.split("[ -]", title)[0]
    return title[0].lower() + title[1:] if first.istitle() and first not in NAMES else title


def threshold_words(thresholds: Collection[float]) -> str:
    """`threshold 0.1`, or `thresholds 0.81 to 0.84` where they differ; signs as in print."""
    low, high = (f"{value:.3g}".replace("-", "−") for value in (min(thresholds), max(thresholds)))
    return f"threshold {low}" if low == high else f"thresholds {low} to {high}"
