"""Which images a person is asked about in a week, and which others are learned from unasked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from oltr.openworld.cluster import medoids, ward_clusters
from oltr.openworld.naming import Naming
from oltr.openworld.refit import Head

# Of `discovering`, chosen on known classes that played new ones.
ROUNDS = 3  # times in a week that the answers so far are learned from
OF_CLUSTERS = 0.3  # of the questions at most: about clusters of rejected images


@dataclass(eq=False)
class Week:
    """What there is to choose from, M images learned from or arrived, and the recogniser so far."""

    features: np.ndarray  # M×D
    placed: np.ndarray  # M×D of length 1, in the metric of the known classes
    names: dict[int, int]  # image → class, of all that are labelled
    cut: float  # through Ward's tree
    answer: Callable[[int], int]  # the person
    fit: Callable[[np.ndarray, np.ndarray], Head]  # of features and labels
    head: Head
    random: np.random.Generator

    @property
    def unlabelled(self) -> np.ndarray:
        """Images without a label."""
        return np.setdiff1d(np.arange(len(self.features)), list(self.names))

    def ask(self, images: np.ndarray) -> None:
        """Have a person name these."""
        self.names |= {int(image): self.answer(int(image)) for image in images}

    def learn(self, guesses: Mapping[int, int] | None = None) -> None:
        """Fit the head anew to all names, and to guesses beside them."""
        taught = {**(guesses or {}), **self.names}
        rows = np.array(sorted(taught))
        self.head = self.fit(self.features[rows], np.array([taught[row] for row in rows.tolist()]))


Strategy = Callable[[Week, int], None]  # asks so many questions and learns


def everything(week: Week, labels: int) -> None:
    """Every image; `labels` is not heeded."""
    week.ask(week.unlabelled)
    week.learn()


def at_random(week: Week, labels: int) -> None:
    """Any images."""
    week.ask(week.random.permutation(week.unlabelled)[:labels])
    week.learn()


def by_uncertainty(week: Week, labels: int) -> None:
    """The images whose two likeliest classes are closest."""
    week.ask(_least_margin(week, labels))
    week.learn()


def discovering(week: Week, labels: int) -> None:
    """Middles of clusters of rejected images, then the closest decisions, in rounds that are learned from.

    At the end images that were not asked about teach too, where their neighbours' name is the head's own.
    """
    for questions in map(len, np.array_split(np.arange(labels), ROUNDS)):
        middles = _cluster_middles(week, round(OF_CLUSTERS * questions))
        week.ask(middles)
        week.ask(_least_margin(week, questions - len(middles)))
        week.learn()
    week.learn(_guesses(week))


def _cluster_middles(week: Week, most: int) -> np.ndarray:
    """The medoids of the largest clusters of rejected images."""
    left = week.unlabelled
    rejected = left[week.head.rejects(week.features[left])]
    if len(rejected) == 0:
        return rejected
    placed = week.placed[rejected]
    return rejected[medoids(placed, ward_clusters(placed, week.cut))[:most]]


def _least_margin(week: Week, most: int) -> np.ndarray:
    """The images with the least difference between the probabilities of their two likeliest classes."""
    left = week.unlabelled
    shares = week.head.logits(week.features[left]).softmax(dim=1)
    best = shares.topk(min(2, shares.shape[1]), dim=1).values
    return left[(best[:, 0] - best[:, -1]).argsort(stable=True)[:most].numpy()]


def _guesses(week: Week) -> dict[int, int]:
    """Names of images nobody was asked about, where head and neighbours agree."""
    left = week.unlabelled
    if len(left) == 0:
        return {}
    neighbours = Naming(week.placed, np.full(len(week.features), -1), dict(week.names)).names()[left]
    own = week.head.predict(week.features[left])
    return dict(zip(left[own == neighbours].tolist(), own[own == neighbours].tolist(), strict=True))


STRATEGIES: dict[str, Strategy] = {
    "discover": discovering,
    "uncertainty": by_uncertainty,
    "random": at_random,
    "everything": everything,
}
