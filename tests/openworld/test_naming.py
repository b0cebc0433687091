"""Few answers name many images."""

from __future__ import annotations

import numpy as np

from oltr.openworld import naming
from oltr.openworld.cluster import ward_clusters
from oltr.openworld.metric import Metric
from oltr.openworld.naming import Naming, name_by_asking, neighbour_graph, spread
from tests.helpers.blobs import blobs

KNOWN = blobs(24, 12)


def placed(classes: int, images: int, apart: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    features, labels = blobs(classes, images, seed=5, first=100, apart=apart)
    return Metric.fit(*KNOWN)(features), labels - 100


def test_one_answer_for_each_cluster_names_all():
    features, truth = placed(8, 15)
    clusters = ward_clusters(features, 2.0)
    names, answers = name_by_asking(features, clusters, lambda image: int(truth[image]), 8)
    assert len(answers) == 8 and len(set(answers.values())) == 8
    assert (names == truth).all()


def test_further_questions_repair_clusters_that_hold_two_classes():
    features, truth = placed(8, 15)
    clusters = np.minimum(truth, 6)  # the last two are one cluster
    asked = [name_by_asking(features, clusters, lambda image: int(truth[image]), n) for n in (7, 12)]
    right = [(names == truth).mean() for names, _ in asked]
    assert right[0] < 0.95 and right[1] > 0.99


def test_answers_are_never_overruled_and_questions_end():
    features, truth = placed(3, 4, apart=0.5)
    calls: list[int] = []

    def answer(image: int) -> int:
        calls.append(image)
        return int(truth[image])

    names, answers = name_by_asking(features, ward_clusters(features, 1.2), answer, 100)
    assert sorted(calls) == list(range(12)) and (names == truth).all()  # each once, then no more
    assert all(names[image] == name for image, name in answers.items())


def test_what_was_known_before_counts():
    features, truth = placed(4, 10)
    known = {int(image): int(truth[image]) for image in range(0, 40, 5)}
    assert (Naming(features, np.full(40, -1), known).names() == truth).all()


def test_one_image_alone():
    names, answers = name_by_asking(np.ones((1, 2)) / np.sqrt(2), np.zeros(1, dtype=int), lambda _: 3, 5)
    assert names.tolist() == [3] and answers == {0: 3}


def test_spreading_is_the_sum_of_powers(monkeypatch):
    features, truth = placed(3, 6)
    similarity, neighbours = naming._nearest(features, 4)
    graph = neighbour_graph(similarity, neighbours)
    dense = np.zeros((18, 18))
    for i in range(18):
        for value, j in zip(similarity[i], neighbours[i], strict=True):
            dense[i, j] += max(value, 0) ** 3
    dense = dense + dense.T
    degree = dense.sum(axis=1)
    for i in range(18):
        for j in range(18):
            dense[i, j] /= np.sqrt(degree[i] * degree[j])
    np.testing.assert_allclose(graph.toarray(), dense, atol=1e-12)
    monkeypatch.setattr(naming, "ROUNDS", 400)
    seeds = np.eye(3)[truth] * (np.arange(18) % 6 == 0)[:, None]
    solved = np.linalg.solve(np.eye(18) - naming.PASSED_ON * dense, seeds)
    np.testing.assert_allclose(spread(graph, seeds), solved / np.sqrt(solved.sum(axis=0)), rtol=1e-8)


def test_beliefs_sum_to_one():
    features, truth = placed(4, 10)
    told = Naming(features, np.full(40, -1), {0: 0, 10: 1, 20: 2, 30: 3})
    beliefs = told.beliefs()
    np.testing.assert_allclose(beliefs.sum(axis=1), 1)
    assert (beliefs[[0, 10, 20, 30]].argmax(axis=1) == [0, 1, 2, 3]).all() and truth[0] == 0
