"""What a run reaches, in plain sentences that also say when it is little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oltr.metrics.intervals import Interval, wilson_interval
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


class Tile(NamedTuple):
    """A number with its name, what it is about, and half of its 95 % interval."""

    title: str
    value: str
    note: str
    spread: str = ""


@dataclass(frozen=True)
class Verdict:
    """The sentence that the page opens with, what is wrong, what else there is to say, and the numbers."""

    headline: str
    alerts: tuple[str, ...]
    more: tuple[str, ...]
    numbers: tuple[Tile, ...]


@dataclass(frozen=True)
class Caught:
    """Shares of the open and of the known test images that a run's rejection rule calls unknown."""

    unknown: float
    false_alarms: float
    within: Interval = (0.0, 0.0)  # of the false alarms, 95 %


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
    known = rejected[~is_open]
    within = wilson_interval(int(known.sum()), len(known))
    return Caught(float(rejected[is_open].mean()), float(known.mean()), within)


def verdict(runs: Sequence[MeasuredRun]) -> Verdict:
    """Of the run with the best closed-set accuracy, and who else is better at something."""
    best = best_run(runs)
    alike, caught = on_the_same_data(runs, best), caught_by(best.run)
    rule, is_useless = _rule(best.run, caught)
    more = [*_share_of_images(best), *([] if is_useless else rule), *_others(alike, best)]
    alerts = [*_warnings(best), *(rule if is_useless else [])]
    headline = f"{_known(best, alike, len(runs))}; {_unknown(caught)}."
    return Verdict(headline, tuple(alerts), tuple(more), _numbers(best, caught))


def _unknown(caught: Caught | None) -> str:
    """The sentence as far as unknown classes go."""
    if caught is None:
        return "not tested on unknown ones"
    alarms = _of_a_hundred(caught.false_alarms)
    return f"detects {_of_a_hundred(caught.unknown)} unknown ones while rejecting {alarms} known"


def _rule(run: TrainedRun, caught: Caught | None) -> tuple[list[str], bool]:
    """The rejection rule, and whether it is of no use."""
    if caught is None:
        return ["There were no open images, so the detection of unknown classes was not measured."], False
    words, faults = str(run.rule), ""
    if caught.unknown < ALMOST_NONE:
        faults = " That detects almost no unknown image."
    elif caught.false_alarms > MOST:
        faults = " That rejects most known images."
    note = run.rule.note
    return [words + faults, *([f"{note[0].upper()}{note[1:]}."] if note else [])], bool(faults)


def _known(run: MeasuredRun, alike: Sequence[MeasuredRun], of: int) -> str:
    """The sentence as far as known classes go."""
    overall = run.report.closed.overall
    if run.report.num_classes == 1:
        return f"{run.name} knows a single class, so it cannot mistake known images for each other"
    if overall is None:
        return f"{run.name} could not be measured: no class has test images"
    who = "Classifies" if of == 1 else f"{_who(run, alike, of)}: classifies"
    mean = " (mean over classes)" if _share_of_images(run) else ""
    return f"{who} {_of_a_hundred(overall)} known images correctly{mean}"


def _who(run: MeasuredRun, alike: Sequence[MeasuredRun], of: int) -> str:
    """Its name, and what it is among the runs that compare with it."""
    if len(alike) == 1:
        return run.name
    reached = _percent(run.report.closed.overall)
    level = [other.name for other in alike if _percent(other.report.closed.overall) == reached]
    level.remove(run.name)
    among = f"{len(alike)} runs{'' if len(alike) == of else ' on the same data'}"
    if not level:
        return f"{run.name}, the best of {among}"
    first = "" if len(level) == len(alike) - 1 else f" as the best of {among}"
    return f"{run.name}, level with {first_few(level, 3)}{first}"


def _share_of_images(run: MeasuredRun) -> list[str]:
    """Where classes have few and many test images, the mean over classes is not the share of images."""
    overall, test = run.report.closed.overall, run.run.outputs["test"]
    share = float((test.logits.argmax(dim=1) == test.labels).double().mean())
    if overall is None or abs(share - overall) <= ONE_POINT:
        return []
    return [
        f"Its test images are spread unevenly over the classes: of all {count(len(test), 'image')} it "
        f"classifies {_percent(share)} correctly."
    ]


def _warnings(run: MeasuredRun) -> list[str]:
    closed, classes = run.report.closed, run.report.num_classes
    warnings = []
    if classes > 1 and closed.overall is not None and near_chance(closed.overall, classes):
        warnings.append(
            f"Its accuracy is near chance: guessing among {classes:,} classes gives {_percent(1 / classes)}. "
            "The network has hardly learned, or images and labels do not match."
        )
    elif closed.few == 0 and run.report.shots.few:
        warnings.append("No image of a few-shot class is classified correctly.")
    auroc = _auroc(run)
    if auroc is not None and auroc < HARDLY_BETTER:
        warnings.append(
            f"Its score hardly separates known from unknown images (AUROC {auroc:.2f}; chance is 0.50)."
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
            f"{top.name} separates known from unknown images better: AUROC {theirs:.2f} against {ours:.2f}."
        )
    return sentences


def _auroc(run: MeasuredRun) -> float | None:
    return None if run.report.open is None else run.report.open.auroc


def _numbers(run: MeasuredRun, caught: Caught | None) -> tuple[Tile, ...]:
    """The tiles."""
    closed, shots, rule = run.report.closed, run.report.shots, run.run.rule
    within = closed.interval or {}
    tiles = [_tile("overall", closed.overall, "closed set, mean over classes", within.get("overall"))]
    tiles += [
        _tile(f"{group}-shot", getattr(closed, group), _classes_of(run, group), within.get(group))
        for group in GROUPS
        if getattr(shots, group)
    ]
    if closed.top5 is not None:
        tiles.append(_tile("top-5", closed.top5, "correct class among the five likeliest"))
    if caught is not None and run.report.open is not None:
        found = (run.report.open.interval or {}).get("unknown_recall")
        note = f"{rule.score}, threshold {rule.threshold:.3g}"
        tiles.append(_tile("unknown detected", caught.unknown, note, found))
        tiles.append(_tile("known rejected", caught.false_alarms, "called unknown", caught.within))
    return tuple(tiles)


def _tile(title: str, value: float | None, note: str, within: Sequence[float] | None = None) -> Tile:
    spread = "" if within is None else f"± {50 * (within[1] - within[0]):.1f}"
    return Tile(title, _percent(value), note, spread)


def _classes_of(run: MeasuredRun, group: str) -> str:
    """How many classes a shot group has, and how many of them are in no mean."""
    rows = zip(run.run.groups, run.report.per_class, strict=True)
    untested = sum(kind == group and entry.accuracy is None for kind, entry in rows)
    classes = count(getattr(run.report.shots, group), "class")
    return f"{classes}, {untested:,} without test images" if untested else classes


def _of_a_hundred(share: float) -> str:
    """`88 of 100`; never none or all where it is only nearly so."""
    if 0 < share < 0.005:
        return "fewer than 1 of 100"
    return "more than 99 of 100" if 0.995 <= share < 1 else f"{100 * share:.0f} of 100"


def _percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"
