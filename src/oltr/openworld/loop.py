"""Weeks of images with new classes among them: what is asked, what is learned, how right the recogniser is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from oltr.openworld.cluster import choose_cut
from oltr.openworld.metric import Metric
from oltr.openworld.refit import Head, refit
from oltr.openworld.strategies import STRATEGIES, Strategy, Week
from oltr.openworld.stream import Stream


@dataclass(frozen=True, eq=False)
class Material:
    """Features of all images: learned from, for thresholds, and labelled ones that are new to the run."""

    train: np.ndarray  # T×D
    train_labels: np.ndarray  # T int64, 0..known-1
    validation: np.ndarray  # V×D
    validation_labels: np.ndarray  # V
    pool: np.ndarray  # N×D
    pool_labels: np.ndarray  # N int64, from `known` on of new classes
    known: int  # classes of the run

    def metric(self) -> tuple[Metric, float]:
        """The space that clusters are found in and the cut, both from the known classes alone."""
        features = np.concatenate([self.train, self.validation])
        labels = np.concatenate([self.train_labels, self.validation_labels])
        return Metric.fit(features, labels), choose_cut(features, labels, AT_A_TIME)


AT_A_TIME = 100  # unknown images of a week, about


@dataclass(frozen=True)
class WeekResult:
    """After a week; shares of held-out images, None where there are none."""

    week: int  # from 1
    arrived: int  # images so far
    labels: int  # spent so far
    classes_seen: int  # that have turned up, the run's own included
    classes_named: int  # that the recogniser has
    accuracy: float  # of the classes seen, mean over classes; a class without a name counts 0
    accuracy_images: float  # mean over images
    accuracy_new: float | None  # of new classes seen, mean over classes
    known_rejected: float  # of images of classes seen
    unknown_recall: float | None  # of images of classes that never come, rejected


def simulate(
    material: Material,
    stream: Stream,
    strategy: Strategy,
    labels: int,
    space: tuple[Metric, float],
    score: str = "max-logit",
    unknown_rate: float = 0.05,
    seed: int = 0,
) -> Iterator[WeekResult]:
    """One strategy through all weeks, `labels` answers in each."""
    learned = len(material.train)
    features = np.concatenate([material.train, material.pool]).astype(np.float32)
    truth = np.concatenate([material.train_labels, material.pool_labels])
    metric, cut = space
    placed = metric(features).astype(np.float32)
    names: dict[int, int] = dict(enumerate(material.train_labels.tolist()))  # row of `features` → class
    random = np.random.default_rng(seed)
    head, classes = _learn(material, features, names, {}, score, unknown_rate)
    for number in range(stream.weeks):
        rows = np.concatenate([np.arange(learned), learned + stream.arrived(number)])
        place = {int(row): place for place, row in enumerate(rows)}
        week = Week(
            features[rows],
            placed[rows],
            {place[row]: name for row, name in names.items()},
            head,
            cut,
            lambda image, rows=rows: int(truth[rows[image]]),  # type: ignore[misc]
            random,
        )
        guesses = strategy(week, labels)
        names = {int(rows[image]): name for image, name in week.names.items()}
        guessed = {int(rows[image]): name for image, name in guesses.items()}
        head, classes = _learn(material, features, names, guessed, score, unknown_rate)
        yield _measured(material, stream, head, classes, number, len(rows) - learned, len(names) - learned)


def _learn(
    material: Material,
    features: np.ndarray,
    names: Mapping[int, int],
    guesses: Mapping[int, int],
    score: str,
    unknown_rate: float,
) -> tuple[Head, np.ndarray]:
    """The head of all that is named, and the class of each of its rows."""
    taught = {**guesses, **names}
    rows = np.array(sorted(taught))
    classes, numbers = np.unique([taught[row] for row in rows.tolist()], return_inverse=True)
    return refit(features[rows], numbers, material.validation, score, unknown_rate), classes


def _measured(
    material: Material, stream: Stream, head: Head, classes: np.ndarray, number: int, arrived: int, labels: int
) -> WeekResult:
    first = stream.first_week[material.pool_labels]
    seen = stream.held_out & (first <= number)
    never = stream.held_out & (first == stream.weeks)
    truth = material.pool_labels[seen]
    right = classes[head.logits(material.pool[seen]).argmax(dim=1).numpy()] == truth
    by_class = np.array([right[truth == name].mean() for name in np.unique(truth)])
    new = np.unique(truth) >= material.known
    return WeekResult(
        week=number + 1,
        arrived=arrived,
        labels=labels,
        classes_seen=len(np.unique(truth)),
        classes_named=len(classes),
        accuracy=float(by_class.mean()),
        accuracy_images=float(right.mean()),
        accuracy_new=float(by_class[new].mean()) if new.any() else None,
        known_rejected=float(head.rejects(material.pool[seen]).mean()),
        unknown_recall=float(head.rejects(material.pool[never]).mean()) if never.any() else None,
    )


def run_all(
    material: Material, stream: Stream, labels: int, space: tuple[Metric, float], seed: int, **rule: object
) -> dict[str, list[WeekResult]]:
    """Every strategy on the same weeks."""
    return {
        name: list(simulate(material, stream, strategy, labels, space, seed=seed, **rule))  # type: ignore[arg-type]
        for name, strategy in STRATEGIES.items()
    }
