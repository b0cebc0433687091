"""The space of the known classes, against slow versions."""

from __future__ import annotations

import numpy as np
import pytest

from oltr.openworld.metric import Metric, class_means, unit
from tests.helpers.blobs import blobs


def test_distances_are_those_of_the_inverse_covariance():
    features, labels = blobs(6, 9)
    metric = Metric.fit(features, labels, shrinkage=0.4)
    units = unit(features - features.mean(axis=0, dtype=np.float64))
    covariances = [np.cov(units[labels == k].T) for k in range(6)]
    spread = np.mean(covariances, axis=0)
    spread = 0.6 * spread + 0.4 * np.trace(spread) / len(spread) * np.eye(len(spread))
    inverse = np.linalg.inv(spread)
    found = metric(features[:5])
    for i in range(5):
        for j in range(5):
            cosine = units[i] @ inverse @ units[j]
            cosine /= np.sqrt(units[i] @ inverse @ units[i] * (units[j] @ inverse @ units[j]))
            assert found[i] @ found[j] == pytest.approx(cosine, abs=1e-8)


def test_new_classes_stand_farther_apart_than_before():
    metric = Metric.fit(*blobs(12, 12))
    features, labels = blobs(6, 10, first=50)

    def ratio(placed: np.ndarray) -> float:
        means = class_means(placed, labels - 50, 6)
        within = ((placed - means[labels - 50]) ** 2).sum(axis=1).mean()
        return ((means - means.mean(axis=0)) ** 2).sum(axis=1).mean() / within

    assert ratio(metric(features)) > 1.3 * ratio(unit(features - metric.centre))


def test_one_image_of_each_class_is_enough_to_go_on():
    features, _ = blobs(5, 1)
    placed = Metric.fit(features, np.arange(5))(features)
    np.testing.assert_allclose(placed, unit(features - features.mean(axis=0, dtype=np.float64)), atol=1e-6)


def test_class_means_by_a_loop():
    features, labels = blobs(3, 4)
    means = class_means(features, labels, 5)
    for k in range(3):
        np.testing.assert_allclose(means[k], features[labels == k].mean(axis=0), rtol=1e-4, atol=1e-5)
    assert not means[3:].any()
