"""The order of labelling covers every cluster before it asks twice."""

from __future__ import annotations

import numpy as np

from oltr.openworld.metric import Metric
from oltr.openworld.rank import label_first
from tests.helpers.blobs import blobs

FEATURES, LABELS = blobs(10, 6, first=100)
CLUSTERS = LABELS - 100
PLACED = Metric.fit(*blobs(24, 12))(FEATURES)
FLAT = np.zeros(60)


def test_every_cluster_comes_before_any_comes_twice():
    order = label_first(PLACED, CLUSTERS, FLAT, FLAT)
    assert sorted(order) == list(range(60))
    assert sorted(CLUSTERS[order[:10]]) == list(range(10))


def test_large_and_novel_clusters_come_first():
    sizes = np.concatenate([np.flatnonzero(CLUSTERS == 3), np.flatnonzero(CLUSTERS == 5)[:2]])
    two = (CLUSTERS[sizes] == 5).astype(int)
    assert two[label_first(PLACED[sizes], two, np.zeros(8), np.zeros(8))[0]] == 0
    novelty = np.where(CLUSTERS == 7, 1.0, np.random.default_rng(0).uniform(-1, 0, 60))
    assert CLUSTERS[label_first(PLACED, CLUSTERS, novelty, FLAT)[0]] == 7


def test_doubtful_images_come_before_clear_ones():
    alike = np.tile(PLACED[:1], (4, 1)) + 0.01 * np.eye(4, PLACED.shape[1])
    alike /= np.linalg.norm(alike, axis=1, keepdims=True)
    order = label_first(alike, np.zeros(4, dtype=int), np.zeros(4), np.array([0.1, 0.2, 0.9, 0.3]))
    assert 2 in order[:2]


def test_none():
    assert label_first(np.zeros((0, 4)), np.zeros(0, dtype=int), np.zeros(0), np.zeros(0)).tolist() == []
