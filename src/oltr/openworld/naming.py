"""Many images named by few answers: which image to ask about next, and what the answers say of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.neighbors import NearestNeighbors

from oltr.openworld.cluster import medoids
from oltr.openworld.metric import class_means, unit

# Chosen on known classes that played unknown.
NEIGHBOURS, PASSED_ON, ROUNDS = 15, 0.9, 60
OF_MIDDLES = 0.7  # of the labels, at most, go to medoids of clusters
DENSITY_OF = 10  # neighbours whose mean similarity says how crowded a place is
MARGIN, APART = 2.0, 0.5  # weights, beside that of the density, of an unsure name and of being near an answer
ANSWER, GUESS = 5.0, 0.1  # weights of an answer in a name's mean, and of a guess in spreading


@dataclass
class Naming:
    """Names of N images of unit features N×D, as answers come in."""

    features: np.ndarray
    clusters: np.ndarray  # N, numbered from 0; -1: in none
    answers: dict[int, int] = field(default_factory=dict)  # image → number of its name, what is known before
    middles: int | None = None  # clusters whose medoids are asked about, the first ones; all unless given

    def __post_init__(self) -> None:
        images = len(self.features)
        inside = np.flatnonzero(self.clusters >= 0)
        self.medoids = (
            inside[medoids(self.features[inside], self.clusters[inside])] if len(inside) else inside
        )
        self.similarity, self.neighbours = _nearest(self.features, NEIGHBOURS)
        self.density = self.similarity[:, :DENSITY_OF].mean(axis=1)
        self.nearest_answer = np.full(images, -1.0)
        self.guesses = np.full(images, -1)  # -1: none yet
        if self.answers:
            asked = list(self.answers)
            self.guesses[asked] = list(self.answers.values())
            for block in np.array_split(asked, len(asked) // 512 + 1):
                near = (self.features @ self.features[block].T).max(axis=1)
                np.maximum(self.nearest_answer, near, out=self.nearest_answer)

    def tell(self, image: int, name: int) -> None:
        """An answer: the name's number, from 0."""
        self.answers[image] = name
        np.maximum(self.nearest_answer, self.features @ self.features[image], out=self.nearest_answer)
        if image in self.medoids:
            self.guesses[(self.clusters == self.clusters[image]) & (self.guesses < 0)] = name
        self.guesses[image] = name

    def next_question(self) -> int | None:
        """The medoid of the largest cluster not asked about; then an unsure image of a crowded place."""
        if len(self.answers) == len(self.features):
            return None
        if left := [image for image in self.medoids[: self.middles] if image not in self.answers]:
            return int(left[0])
        self.guesses, margin = self._by_means()
        worth = self.density - MARGIN * margin - APART * self.nearest_answer
        worth[list(self.answers)] = -np.inf
        return int(worth.argmax())

    def names(self) -> np.ndarray:
        """The name of every image (N): that of the nearest mean, passed on among neighbours."""
        return self.beliefs().argmax(axis=1)

    def beliefs(self) -> np.ndarray:
        """How much of each name reaches an image, rows of sum 1: N×C."""
        guesses, _ = self._by_means()
        seeds = np.zeros((len(guesses), guesses.max() + 1))
        seeds[np.arange(len(guesses)), guesses] = GUESS
        asked = list(self.answers)
        seeds[asked, guesses[asked]] += 1.0
        found = spread(neighbour_graph(self.similarity, self.neighbours), seeds)
        found /= found.sum(axis=1, keepdims=True)
        found[asked] = np.eye(found.shape[1])[guesses[asked]]
        return found

    def _by_means(self) -> tuple[np.ndarray, np.ndarray]:
        """The name whose mean is nearest, and by how much it is nearer than the next."""
        asked, named = list(self.answers), np.flatnonzero(self.guesses >= 0)
        rows = np.concatenate([named, np.repeat(asked, int(ANSWER) - 1)]).astype(np.int64)
        numbers = self.guesses[rows]
        means = unit(class_means(self.features[rows], numbers, numbers.max() + 1))
        near = self.features @ means.T
        near[:, np.bincount(numbers) == 0] = -np.inf
        found = near.argmax(axis=1)
        found[asked] = [self.answers[image] for image in asked]
        if near.shape[1] < 2:
            return found, np.zeros(len(near))
        second, first = np.partition(near, -2, axis=1)[:, -2:].T
        return found, np.nan_to_num(first - second, posinf=2.0)


def name_by_asking(
    features: np.ndarray, clusters: np.ndarray, answer: Callable[[int], int], labels: int
) -> tuple[np.ndarray, Mapping[int, int]]:
    """Ask about at most `labels` images; the names of all N, and the answers in their order."""
    naming = Naming(features, clusters, middles=max(round(OF_MIDDLES * labels), 1))
    while len(naming.answers) < labels and (image := naming.next_question()) is not None:
        naming.tell(image, answer(image))
    return naming.names(), naming.answers


def neighbour_graph(similarity: np.ndarray, neighbours: np.ndarray) -> csr_matrix:
    """D^-½ A D^-½ of the symmetric graph with weights max(0, similarity)³, N×N, from N×k neighbours."""
    images, k = neighbours.shape
    weights = similarity.clip(min=0).ravel() ** 3
    rows = np.repeat(np.arange(images), k)
    graph = csr_matrix((weights, (rows, neighbours.ravel())), shape=(images, images))
    graph = graph + graph.T
    scale = 1 / np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12))
    return csr_matrix(graph.multiply(scale[:, None]).multiply(scale[None, :]))


def spread(graph: csr_matrix, seeds: np.ndarray) -> np.ndarray:
    """F = Σ αⁿ Sⁿ Y (Zhou et al., 2004), each column over the root of its sum: seeds N×C → N×C.

    The root keeps a name with many seeds from taking over its neighbours.
    """
    found = seeds
    for _ in range(ROUNDS):
        found = PASSED_ON * (graph @ found) + seeds
    return found / np.sqrt(np.maximum(found.sum(axis=0), 1e-12))


def _nearest(features: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Similarity and number of the k most similar other images, N×k each."""
    k = min(most, len(features) - 1)
    if k < 1:
        return np.zeros((len(features), 1)), np.arange(len(features))[:, None]
    away, found = NearestNeighbors(n_neighbors=k).fit(features).kneighbors()
    return 1 - away**2 / 2, found
