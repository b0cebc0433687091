"""What a run reaches, in plain sentences that also say when it is little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oltr.data.wording import count
from oltr.errors import UserError
from oltr.evaluation.outputs import OPEN
from oltr.openset.threshold import choose_threshold
from oltr.report.page.load import PageRun

NEAR_CHANCE = 2.0  # times the accuracy of guessing
HARDLY_BETTER = 0.55  # AUROC; a coin has 0.5
ALMOST_NONE = 0.01
RATE = 0.05  # false alarms at which runs are compared, whatever their threshold


@dataclass(frozen=True)
class Caught:
    """Shares of the open and of the known test images that a threshold calls unknown."""

    unknown: float
    false_alarms: float


@dataclass(frozen=True)
class Verdict:
    """The sentence that the page opens with, more under it, and the numbers beside (title, value, note)."""

    headline: str
    more: tuple[str, ...]
    numbers: tuple[tuple[str, str, str], ...]


def caught_at(run: PageRun, threshold: float | None) -> Caught | None:
    """At that threshold on the run's own score; None without open images."""
    decisions = run.loaded.decisions
    if threshold is None or run.loaded.unseen is None:
        return None
    unknown = decisions.score.is_unknown(decisions.values, threshold).double()
    is_open = decisions.labels == OPEN
    return Caught(float(unknown[is_open].mean()), float(unknown[~is_open].mean()))


def caught_at_rate(run: PageRun, rate: float = RATE) -> Caught | None:
    """At the threshold that calls this share of known validation images unknown; None if there is none."""
    try:
        return caught_at(run, choose_threshold(run.loaded.score, run.loaded.read.get("val"), rate))
    except UserError:
        return None


def verdict(runs: Sequence[PageRun]) -> Verdict:
    """Of the run with the best closed-set accuracy, and who else is better at something."""
    best = max(runs, key=lambda run: run.report["closed"]["overall"] or 0.0)
    own, careful = caught_at(best, best.loaded.threshold), caught_at_rate(best)
    more = []
    if own is None:
        ending = "; it was not tested on unknown classes"
        more.append("There were no open images, so nothing is known of how it treats what it has never seen.")
    elif own.unknown < ALMOST_NONE and careful is not None:
        ending = f", and can catch {_at(careful)}"
        more.append(
            f"That takes the threshold at which {_percent(RATE, 0)} of the known validation images are "
            f"called unknown. Its own ({_rule(best)}) catches {_at(own)}: it rejects almost nothing."
        )
    else:
        ending = f", and catches {_at(own)}"
        if own.unknown < ALMOST_NONE:
            more.append(f"Its threshold ({_rule(best)}) rejects almost nothing.")
        elif careful is not None and best.report["open"].get("unknown_rate") is None:
            more.append(
                f"With the threshold at which {_percent(RATE, 0)} of the known validation images are called "
                f"unknown, it catches {_at(careful)}."
            )
    more += _warnings(best) + _others(runs, best)
    return Verdict(f"{_known(best, len(runs))}{ending}.", tuple(more), _numbers(best, own))


def _known(run: PageRun, of: int) -> str:
    """The sentence as far as known classes go."""
    closed, shots = run.report["closed"], run.report["shots"]
    if run.report["num_classes"] == 1:
        return f"{run.name} knows a single class, so it cannot mistake known images for each other"
    if closed["overall"] is None:
        return f"{run.name} could not be measured, for no class has test images"
    who = run.name if of == 1 else f"{run.name}, the best of {of} runs,"
    sentence = f"{who} names {_percent(closed['overall'])} of the known images rightly"
    if shots["few"] == 0:
        return f"{sentence}, with no few-shot class among its {count(run.report['num_classes'], 'class')}"
    if closed["few"] is None:
        return f"{sentence}, though its few-shot classes have no test images"
    return f"{sentence}, {_percent(closed['few'])} on few-shot classes"


def _at(caught: Caught) -> str:
    alarms = _percent(caught.false_alarms)
    return f"{_percent(caught.unknown)} of the unknown ones at {alarms} false alarms"


def _rule(run: PageRun) -> str:
    return f"{run.loaded.score.name} score, threshold {run.loaded.threshold:.3g}"


def _warnings(run: PageRun) -> list[str]:
    closed, classes = run.report["closed"], run.report["num_classes"]
    warnings = []
    if classes > 1 and closed["overall"] is not None and closed["overall"] < NEAR_CHANCE / classes:
        warnings.append(
            f"Its accuracy is near chance: guessing among {classes:,} classes gives {_percent(1 / classes)}. "
            "The network has hardly learned, or its data and labels do not belong together."
        )
    elif closed["few"] == 0 and run.report["shots"]["few"]:
        warnings.append("No image of a few-shot class is recognised: the tail is lost.")
    auroc = (run.report.data.get("open") or {}).get("auroc")
    if auroc is not None and auroc < HARDLY_BETTER:
        warnings.append(
            f"Its score hardly tells known from unknown images (AUROC {auroc:.2f}; a coin has 0.50)."
        )
    return warnings


def _others(runs: Sequence[PageRun], best: PageRun) -> list[str]:
    """Runs that are better than the best one at few-shot classes, or at catching unknown images."""
    sentences = []
    few = max(runs, key=lambda run: run.report["closed"]["few"] or 0.0)
    reached, other = best.report["closed"]["few"], few.report["closed"]["few"]
    if reached is not None and other is not None and other > reached:
        sentences.append(f"{few.name} is better on few-shot classes: {_percent(other)}.")
    areas = {run.name: (run.report.data.get("open") or {}).get("auroc") or 0.0 for run in runs}
    top = max(areas, key=lambda name: areas[name])
    if areas[top] > areas[best.name] > 0:
        sentences.append(
            f"{top} tells known from unknown images better: AUROC {areas[top]:.2f} against "
            f"{areas[best.name]:.2f}."
        )
    return sentences


def _numbers(run: PageRun, caught: Caught | None) -> tuple[tuple[str, str, str], ...]:
    closed = run.report["closed"]
    numbers = [("overall", closed["overall"], "closed set, mean over classes")]
    numbers += [
        (f"{group}-shot", closed[group], count(run.report["shots"][group], "class"))
        for group in ("many", "medium", "few")
        if run.report["shots"][group]
    ]
    if caught is not None:
        numbers.append(("unknown caught", caught.unknown, _rule(run)))
        numbers.append(("false alarms", caught.false_alarms, "known images called unknown"))
    return tuple((title, _percent(value), note) for title, value, note in numbers)


def _percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"
