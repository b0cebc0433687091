"""Which images a person is asked about each week."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oltr.openworld.cluster import ward_clusters
from oltr.openworld.naming import Naming
from oltr.openworld.refit import Head

SURE = 0.5  # belief from which on an image that nobody was asked about teaches


@dataclass(eq=False)
class Week:
    """What is there to choose from: M images, learned from or arrived, and the recogniser so far."""

    features: np.ndarray  # M×D
    placed: np.ndarray  # M×D, in the metric of the known classes
    names: dict[int, int]  # image → class, of all that are labelled; answers are added
    head: Head
    cut: float
    answer: Callable[[int], int]
    random: np.random.Generator

    def ask(self, image: int) -> int:
        """A person's answer, kept."""
        self.names[int(image)] = self.answer(int(image))
        return self.names[int(image)]

    @property
    def unlabelled(self) -> np.ndarray:
        """Images without a label."""
        return np.setdiff1d(np.arange(len(self.features)), list(self.names))


Strategy = Callable[[Week, int], "dict[int, int]"]  # asks about so many images; names that it adds as guesses


def everything(week: Week, labels: int) -> dict[int, int]:
    """Every image; `labels` is not heeded."""
    for image in week.unlabelled:
        week.ask(image)
    return {}


def at_random(week: Week, labels: int) -> dict[int, int]:
    """Any images."""
    for image in week.random.permutation(week.unlabelled)[:labels]:
        week.ask(image)
    return {}


def least_margin(week: Week, labels: int) -> dict[int, int]:
    """The images whose two likeliest classes are closest (uncertainty sampling)."""
    left = week.unlabelled
    best = week.head.logits(week.features[left]).softmax(dim=1).topk(2, dim=1).values
    for image in left[(best[:, 0] - best[:, 1]).argsort(stable=True)[:labels].numpy()]:
        week.ask(image)
    return {}


def discovering(week: Week, labels: int, guesses: bool = True) -> dict[int, int]:
    """One image of each cluster of rejected images, then unsure ones in crowded places; sure guesses teach."""
    left = week.unlabelled
    rejected = left[week.head.rejects(week.features[left])]
    clusters = np.full(len(week.features), -1)
    if len(rejected):
        clusters[rejected] = ward_clusters(week.placed[rejected], week.cut)
    naming = Naming(week.placed, clusters, dict(week.names))
    for _ in range(min(labels, len(left))):
        image = naming.next_question()
        assert image is not None
        naming.tell(image, week.ask(image))
    if not guesses:
        return {}
    beliefs = naming.beliefs()
    sure = np.flatnonzero(beliefs.max(axis=1) >= SURE)
    return {int(image): int(beliefs[image].argmax()) for image in sure if image not in week.names}


STRATEGIES: dict[str, Strategy] = {
    "discover": discovering,
    "random": at_random,
    "uncertainty": least_margin,
    "everything": everything,
}
