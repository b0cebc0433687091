"""Weeks of images with new classes among them, questions to a person, and how right the recogniser is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from oltr.openworld.cluster import choose_cut
from oltr.openworld.metric import Metric
from oltr.openworld.refit import Head, refit
from oltr.openworld.strategies import Strategy, Week
from oltr.openworld.stream import Stream

Fit: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], Head]  # features, labels, validation features
AT_A_TIME = 100  # unknown images of a week, about


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


@dataclass(frozen=True)
class WeekResult:
    """After a week; shares of held-out images, None where there are none."""

    week: int  # from 1
    arrived: int  # images so far
    labels: int  # spent so far
    classes_seen: int  # that have turned up, the run's own included
    classes_named: int  # of these, that the recogniser has
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
    fit: Fit = refit,
    seed: int = 0,
) -> Iterator[WeekResult]:
    """One strategy through all weeks, `labels` answers in each; `fit` makes a head of features and labels."""
    features = np.concatenate([material.train, material.pool]).astype(np.float32)
    truth = np.concatenate([material.train_labels, material.pool_labels])
    metric, cut = space
    placed = metric(features).astype(np.float32)
    learned = np.arange(len(material.train))
    week = Week(
        features[learned],
        placed[learned],
        dict(enumerate(material.train_labels.tolist())),
        cut,
        answer=lambda image: int(truth[rows[image]]),
        fit=lambda given, names: fit(given, names, material.validation),
        head=None,  # type: ignore[arg-type]
        random=np.random.default_rng(seed),
    )
    week.learn()
    rows = learned  # of the week's images in `features`; later ones are appended
    for number in range(stream.weeks):
        rows = np.concatenate([rows, len(learned) + np.flatnonzero(stream.week == number)])
        week.features, week.placed = features[rows], placed[rows]
        strategy(week, labels)
        spent = len(week.names) - len(learned)
        yield _measured(material, stream, week.head, number, len(rows) - len(learned), spent)


def _measured(
    material: Material, stream: Stream, head: Head, number: int, arrived: int, labels: int
) -> WeekResult:
    first = stream.first_week[material.pool_labels]
    seen = stream.held_out & (first <= number)
    never = stream.held_out & (first == stream.weeks)
    truth = material.pool_labels[seen]
    right = head.predict(material.pool[seen]) == truth
    names, places = np.unique(truth, return_inverse=True)
    by_class = np.bincount(places, weights=right) / np.bincount(places)
    new = names >= material.known
    return WeekResult(
        week=number + 1,
        arrived=arrived,
        labels=labels,
        classes_seen=len(names),
        classes_named=int(np.isin(names, head.classes).sum()),
        accuracy=float(by_class.mean()),
        accuracy_images=float(right.mean()),
        accuracy_new=float(by_class[new].mean()) if new.any() else None,
        known_rejected=float(head.rejects(material.pool[seen]).mean()),
        unknown_recall=float(head.rejects(material.pool[never]).mean()) if never.any() else None,
    )
