"""The loop on a run's own images, or on another labelled source: several strategies, several seeds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from oltr.console import console
from oltr.errors import UserError
from oltr.openset import SCORES
from oltr.openworld.loop import Material, WeekResult, simulate
from oltr.openworld.refit import refit
from oltr.openworld.strategies import STRATEGIES
from oltr.openworld.stream import make_stream

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

QUARTER = 0.25  # of the images that arrive, where nobody says how many labels there are
RATE = 0.05  # of known validation images rejected, where the run's rule has a threshold of its own


@dataclass(frozen=True, eq=False)
class Experiment:
    """Results by strategy, then seed, then week."""

    run: str
    weeks: int
    labels: int  # a week
    score: str
    results: dict[str, list[list[WeekResult]]]

    def to_dict(self) -> dict[str, Any]:
        """loop.json."""
        facts = {"schema": 1, "run": self.run, "weeks": self.weeks, "labels_a_week": self.labels}
        weeks = {
            name: [[asdict(week) for week in one] for one in seeds] for name, seeds in self.results.items()
        }
        return facts | {"score": self.score, "strategies": weeks}

    def last(self, strategy: str, measure: str) -> np.ndarray:
        """A measure after the last week, one value for each seed; NaN where there is none."""
        ends = [getattr(one[-1], measure) for one in self.results[strategy]]
        return np.array([np.nan if value is None else value for value in ends])


def experiment(
    run: TrainedRun,
    source: str | None = None,
    root: Path | None = None,
    weeks: int = 8,
    labels: int | None = None,
    seeds: int = 3,
) -> Experiment:
    """Every strategy through the same weeks, `labels` answers in each, for seeds 0, 1, ..."""
    for name, value in (("weeks", weeks), ("labels", labels), ("seeds", seeds)):
        if value is not None and value < 1:
            raise UserError(f"--{name} must be at least 1; got {value}.")
    material = gather(run, source, root)
    score = loop_score(run)
    fit = partial(refit, score=score, unknown_rate=run.rule.unknown_rate or RATE)
    streams = [make_stream(material.pool_labels, material.known, weeks, seed) for seed in range(seeds)]
    arriving = min(int((stream.week >= 0).sum()) for stream in streams)
    labels = labels or max(int(QUARTER * arriving / weeks), 1)
    console.say(f"{arriving:,} images arrive in {weeks} weeks; {labels} questions a week")
    space = material.metric()
    results: dict[str, list[list[WeekResult]]] = {name: [] for name in STRATEGIES}
    done, total = 0, len(streams) * len(STRATEGIES) * weeks
    with console.progress("weeks", "weeks") as progress:
        for seed, stream in enumerate(streams):
            for name, strategy in STRATEGIES.items():
                results[name].append([])
                for week in simulate(material, stream, strategy, labels, space, fit, seed):
                    results[name][-1].append(week)
                    done += 1
                    progress(done, total)
    return Experiment(run.name, weeks, labels, score, results)


def gather(run: TrainedRun, source: str | None = None, root: Path | None = None) -> Material:
    """Features of the run's training and validation images and of labelled test and open images."""
    measured = run if source is None else run.on(source, root)
    manifest = run.manifest if measured.other_data is None else measured.other_data
    train, val = run.own_outputs()["train"], run.own_outputs().get("val")
    if val is None:
        raise UserError(f"{run.path} has no validation images.", "Thresholds are chosen on them.")
    if "open" not in measured.outputs:
        raise UserError("There are no open images, so no new class can turn up.", try_this="--source SOURCE")
    new = sorted(set(manifest.open_class_names()))
    numbers = {name: len(run.class_names) + place for place, name in enumerate(new)}
    test, unseen = measured.outputs["test"], measured.outputs["open"]
    opened = torch.tensor([numbers[name] for name in manifest.rows("open")["label"]])
    return Material(
        train=train.features.numpy(),
        train_labels=train.labels.numpy(),
        validation=val.features.numpy(),
        validation_labels=val.labels.numpy(),
        pool=torch.cat([test.features, unseen.features]).numpy(),
        pool_labels=torch.cat([test.labels, opened]).numpy(),
        known=len(run.class_names),
    )


def loop_score(run: TrainedRun) -> str:
    """The run's score, or max-logit where that needs images or a memory, which features alone do not give."""
    name = run.rule.score
    return "max-logit" if name == "reachability" or SCORES[name]().view else name
