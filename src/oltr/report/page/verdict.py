"""What a run reaches, in plain sentences that also say when it is little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oltr.metrics.shots import GROUPS
from oltr.report.page.runs import MeasuredRun, best_run, on_the_same_data
from oltr.runs.outputs import OPEN
from oltr.runs.trained_run import TrainedRun
from oltr.wording import count, first_few

FAR_FROM_CHANCE = 0.1  # of the way from guessing to naming every image rightly
TIMES_CHANCE = 2.0  # with many classes less of that way is far already
HARDLY_BETTER = 0.55  # AUROC; a coin has 0.5
ALMOST_NONE, MOST = 0.01, 0.5  # shares of images
ONE_POINT = 0.01


@dataclass(frozen=True)
class Verdict:
    """The sentence that the page opens with, more under it, and the numbers beside (title, value, note)."""

    headline: str
    more: tuple[str, ...]
    numbers: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Caught:
    """Shares of the open and of the known test images that a run's rejection rule calls unknown."""

    unknown: float
    false_alarms: float


def near_chance(accuracy: float, classes: int) -> bool:
    """accuracy < min(2/K, 1/K + (1 − 1/K)/10) of K classes."""
    chance = 1 / classes
    return accuracy < min(TIMES_CHANCE * chance, chance + FAR_FROM_CHANCE * (1 - chance))


def caught_by(run: TrainedRun) -> Caught | None:
    """What the run's rejection rule does; None without open images."""
    made = run.decisions
    is_open, rejected = made.labels == OPEN, (made.predictions == OPEN).double()
    if not is_open.any():
        return None
    return Caught(float(rejected[is_open].mean()), float(rejected[~is_open].mean()))


def verdict(runs: Sequence[MeasuredRun]) -> Verdict:
    """Of the run with the best closed-set accuracy, and who else is better at something."""
    best = best_run(runs)
    alike, caught = on_the_same_data(runs, best), caught_by(best.run)
    more = [*_share_of_images(best), *_rule(best.run, caught), *_warnings(best), *_others(alike, best)]
    headline = f"{_known(best, alike, len(runs))}; {_unknown(caught)}."
    return Verdict(headline, tuple(more), _numbers(best, caught))


def _unknown(caught: Caught | None) -> str:
    """The sentence as far as unknown classes go."""
    if caught is None:
        return "it was not tested on unknown classes"
    alarms = _percent(caught.false_alarms)
    return f"it catches {_percent(caught.unknown)} of the unknown images at {alarms} false alarms"


def _rule(run: TrainedRun, caught: Caught | None) -> list[str]:
    """The rejection rule, and what is wrong with it."""
    if caught is None:
        return ["There were no open images, so nothing is known of how it treats what it has never seen."]
    words = str(run.rule)
    if caught.unknown < ALMOST_NONE:
        words += " That catches almost no unknown image."
    elif caught.false_alarms > MOST:
        words += " That rejects most known images."
    note = run.rule.note
    return [words, f"{note[0].upper()}{note[1:]}."] if note else [words]


def _known(run: MeasuredRun, alike: Sequence[MeasuredRun], of: int) -> str:
    """The sentence as far as known classes go."""
    closed, shots = run.report.closed, run.report.shots
    if run.report.num_classes == 1:
        return f"{run.name} knows a single class, so it cannot mistake known images for each other"
    if closed.overall is None:
        return f"{run.name} could not be measured, for no class has test images"
    sentence = f"{_who(run, alike, of)} reaches {_percent(closed.overall)} on known classes"
    sentence += ", mean over classes"
    if shots.few == 0:
        return f"{sentence}, with no few-shot class among its {count(run.report.num_classes, 'class')}"
    if closed.few is None:
        return f"{sentence}, though its few-shot classes have no test images"
    return f"{sentence}, and {_percent(closed.few)} on few-shot ones"


def _who(run: MeasuredRun, alike: Sequence[MeasuredRun], of: int) -> str:
    """Its name, and what it is among the runs that compare with it."""
    if len(alike) == 1:
        return run.name
    reached = _percent(run.report.closed.overall)
    level = [other.name for other in alike if _percent(other.report.closed.overall) == reached]
    level.remove(run.name)
    among = f"{len(alike)} runs{'' if len(alike) == of else ' on the same data'}"
    if not level:
        return f"{run.name}, the best of {among},"
    first = "" if len(level) == len(alike) - 1 else f" as the best of {among}"
    return f"{run.name}, level with {first_few(level, 3)}{first},"


def _share_of_images(run: MeasuredRun) -> list[str]:
    """Where classes have few and many test images, the mean over classes is not the share of images."""
    overall, test = run.report.closed.overall, run.run.outputs["test"]
    share = float((test.logits.argmax(dim=1) == test.labels).double().mean())
    if overall is None or abs(share - overall) <= ONE_POINT:
        return []
    return [
        f"Its test images are spread unevenly over the classes: of the {count(len(test), 'image')} "
        f"themselves it names {_percent(share)} rightly."
    ]


def _warnings(run: MeasuredRun) -> list[str]:
    closed, classes = run.report.closed, run.report.num_classes
    warnings = []
    if classes > 1 and closed.overall is not None and near_chance(closed.overall, classes):
        warnings.append(
            f"Its accuracy is near chance: guessing among {classes:,} classes gives {_percent(1 / classes)}. "
            "The network has hardly learned, or its data and labels do not belong together."
        )
    elif closed.few == 0 and run.report.shots.few:
        warnings.append("No image of a few-shot class is recognised: the tail is lost.")
    auroc = _auroc(run)
    if auroc is not None and auroc < HARDLY_BETTER:
        warnings.append(
            f"Its score hardly tells known from unknown images (AUROC {auroc:.2f}; a coin has 0.50)."
        )
    return warnings


def _others(runs: Sequence[MeasuredRun], best: MeasuredRun) -> list[str]:
    """Runs that are better than the best one at few-shot classes, or at telling unknown images; by what is
    printed, for nobody can see another difference."""
    sentences = []
    few = max(runs, key=lambda run: run.report.closed.few or 0.0)
    reached, other = best.report.closed.few, few.report.closed.few
    if reached is not None and other is not None and other > reached and _percent(other) != _percent(reached):
        sentences.append(f"{few.name} is better on few-shot classes: {_percent(other)}.")
    top = max(runs, key=lambda run: _auroc(run) or 0.0)
    ours, theirs = _auroc(best), _auroc(top)
    if ours is not None and theirs is not None and theirs > ours and f"{theirs:.2f}" != f"{ours:.2f}":
        sentences.append(
            f"{top.name} tells known from unknown images better: AUROC {theirs:.2f} against {ours:.2f}."
        )
    return sentences


def _auroc(run: MeasuredRun) -> float | None:
    return None if run.report.open is None else run.report.open.auroc


def _numbers(run: MeasuredRun, caught: Caught | None) -> tuple[tuple[str, str, str], ...]:
    """The tiles."""
    closed, shots, rule = run.report.closed, run.report.shots, run.run.rule
    numbers = [("overall", closed.overall, "closed set, mean over classes")]
    numbers += [
        (f"{group}-shot", getattr(closed, group), _classes_of(run, group))
        for group in GROUPS
        if getattr(shots, group)
    ]
    if caught is not None:
        numbers.append(("unknown caught", caught.unknown, f"{rule.score}, threshold {rule.threshold:.3g}"))
        numbers.append(("false alarms", caught.false_alarms, "known images called unknown"))
    return tuple((title, _percent(value), note) for title, value, note in numbers)


def _classes_of(run: MeasuredRun, group: str) -> str:
    """How many classes a shot group has, and how many of them are in no mean."""
    rows = zip(run.run.groups, run.report.per_class, strict=True)
    untested = sum(kind == group and entry.accuracy is None for kind, entry in rows)
    classes = count(getattr(run.report.shots, group), "class")
    return f"{classes}, {untested:,} without test images" if untested else classes


def _percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"
