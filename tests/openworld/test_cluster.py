"""Planted clusters are found, with a cut that was chosen on other classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from oltr.openworld import cluster
from oltr.openworld.cluster import choose_cut, medoids, named_for_free, ward_clusters, ward_tree
from oltr.openworld.metric import Metric
from tests.helpers.blobs import blobs

KNOWN = blobs(24, 12)


@pytest.mark.parametrize(("classes", "images"), [(6, 20), (12, 10), (20, 4)])
def test_a_cut_chosen_on_known_classes_finds_new_ones(classes, images):
    features, labels = blobs(classes, images, seed=3, first=100)
    cut = choose_cut(*KNOWN, len(features))
    clusters = ward_clusters(Metric.fit(*KNOWN)(features), cut)
    assert classes <= clusters.max() + 1 <= 1.5 * classes  # a class may come in two parts
    for number in range(clusters.max() + 1):
        assert len(set(labels[clusters == number])) == 1


def test_labels_of_the_unknown_are_not_needed_and_draws_repeat():
    assert choose_cut(*KNOWN, 60) == choose_cut(*KNOWN, 60)
    assert choose_cut(KNOWN[0][:1], KNOWN[1][:1], 60) > 0  # one known image: nothing to choose on


def test_many_images_of_few_classes_do_not_fall_into_many_clusters():
    known, (features, labels) = blobs(24, 4), blobs(6, 150, seed=3, first=100)
    clusters = ward_clusters(Metric.fit(*known)(features), choose_cut(*known, len(features)))
    assert clusters.max() + 1 <= 12 and named_for_free(features, labels, clusters) > 0.9


def test_beyond_the_known_images_the_cut_grows_with_the_unknown_ones():
    half = len(KNOWN[0]) // 2
    assert choose_cut(*KNOWN, 16 * half) == pytest.approx(2 * choose_cut(*KNOWN, half))


def test_the_largest_cluster_is_the_first():
    features, labels = blobs(4, 8, first=200)
    kept = np.concatenate([np.flatnonzero(labels == 200 + k)[: 8 - 2 * k] for k in (3, 1, 0, 2)])
    clusters = ward_clusters(Metric.fit(*KNOWN)(features[kept]), 1.2)
    assert np.bincount(clusters).tolist() == [8, 6, 4, 2]
    assert set(labels[kept][clusters == 0]) == {200}


def test_more_images_than_ward_can_take(monkeypatch):
    features, labels = blobs(5, 40, first=300)
    placed = Metric.fit(*KNOWN)(features)
    whole = ward_clusters(placed, 1.8)
    monkeypatch.setattr(cluster, "AT_ONCE", 60)
    part = ward_clusters(placed, 1.8)
    pairs = set(zip(whole.tolist(), part.tolist(), strict=True))
    assert len(pairs) == 5 and len(np.unique(labels)) == 5  # the same clusters, under whatever number


def test_medoids_by_a_loop():
    features, labels = blobs(4, 7)
    for k, found in enumerate(medoids(features, labels)):
        rows = np.flatnonzero(labels == k)
        away = [np.linalg.norm(features[row] - features[rows].mean(axis=0)) for row in rows]
        assert found == rows[int(np.argmin(away))]


def test_named_for_free_by_hand():
    features = np.array([[0.0], [0.1], [0.3], [5.0], [5.2]])
    truth = np.array([1, 1, 2, 2, 2])
    clusters = np.array([0, 0, 0, 1, 1])
    assert named_for_free(features, truth, clusters) == pytest.approx((4 - 2) / 5)


def test_none_and_one():
    assert ward_clusters(np.zeros((0, 3)), 1.0).tolist() == []
    assert ward_clusters(np.zeros((1, 3)), 1.0).tolist() == [0]


def test_the_tree_is_that_of_the_distances_themselves():
    features = np.random.default_rng(3).standard_normal((60, 5)) + np.repeat(10 * np.eye(5), 12, axis=0)
    assert ward_tree(features) == pytest.approx(linkage(features, "ward"), abs=1e-6)
