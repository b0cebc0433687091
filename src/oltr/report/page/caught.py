"""How many unknown images a run catches, by the threshold of its report and by that of its predictions."""

from __future__ import annotations

from dataclasses import dataclass

from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.openset.threshold import choose_threshold
from oltr.report.page.load import PageRun
from oltr.runs.decision import UNKNOWN_RATE
from oltr.runs.outputs import OPEN


@dataclass(frozen=True)
class Caught:
    """Shares of the open and of the known test images that a threshold calls unknown."""

    unknown: float
    false_alarms: float


@dataclass(frozen=True)
class Rule:
    """A threshold on the run's score, what it does, and how it is called."""

    threshold: float
    caught: Caught
    words: str  # in a sentence
    note: str  # beside a number


def report_rule(run: PageRun) -> Rule | None:
    """By the threshold of report.json, or the default where its score is not the one used; None without open
    images."""
    threshold = run.loaded.threshold
    if threshold is None or run.loaded.unseen is None:
        return None
    rule = f"{run.loaded.score.name} score, threshold {threshold:.3g}"
    kept = (run.kept.data.get("open") or {}).get("score") == run.loaded.score.name
    words = f"{'the threshold of its report.json' if kept else 'the default threshold'} ({rule})"
    note = f"{rule} ({'report.json' if kept else 'the default'})"
    return Rule(threshold, caught_at(run, threshold), words, note)


def validation_rule(run: PageRun) -> Rule | None:
    """By the threshold that calls at most a share of the known validation images unknown: the share that the
    run's predictions go by, or the usual one; None without open or validation images."""
    saved = run.facts.get("decision") or {}
    wished = saved.get("unknown_rate", UNKNOWN_RATE)
    rate = UNKNOWN_RATE if wished is None else wished
    try:
        threshold = choose_threshold(run.loaded.score, run.loaded.read.get("val"), rate)
        usual = saved.get("score") or METHODS[run.loaded.method].score
    except UserError:
        return None
    if run.loaded.unseen is None:
        return None
    used = wished is not None and usual == run.loaded.score.name
    share = f"at most {100 * rate:.3g} %"
    words = f"the threshold at which {share} of the known validation images are called unknown"
    words += ", the one that predict and explain use" if used else ""
    note = f"{run.loaded.score.name} score, threshold {threshold:.3g} ({share} of validation)"
    return Rule(threshold, caught_at(run, threshold), words, note)


def caught_at(run: PageRun, threshold: float) -> Caught:
    """At that threshold on the run's own score; there must be open images."""
    decisions = run.loaded.decisions
    unknown = decisions.score.is_unknown(decisions.values, threshold).double()
    is_open = decisions.labels == OPEN
    return Caught(float(unknown[is_open].mean()), float(unknown[~is_open].mean()))
