import numpy as np
import pytest
import torch
from sklearn.covariance import ledoit_wolf

from tests.helpers.separable import fitted, separable, strangers


def loop(training, features):
    """Class means, residuals from them, scikit-learn's shrunk covariance, and every distance one by one."""
    x, labels = training.features.double().numpy(), training.labels.numpy()
    means = {k: x[labels == k].mean(axis=0) for k in np.unique(labels)}
    residuals = np.stack([row - means[k] for row, k in zip(x, labels, strict=True)])
    inverse = np.linalg.inv(ledoit_wolf(residuals, assume_centered=True)[0])
    found = []
    for row in features.double().numpy():
        found.append(min((row - mean) @ inverse @ (row - mean) for mean in means.values()))
    return torch.tensor(found)


@pytest.mark.parametrize("counts", [[50, 20, 5], [3, 2, 1], [2, 0, 2], [4000, 300, 1]])
def test_it_is_the_least_distance_of_a_loop(counts):
    training, others = separable(counts, seed=0), strangers(8, len(counts), seed=1)
    score = fitted("mahalanobis", training)
    torch.testing.assert_close(
        score.value(*others.inputs), loop(training, others.features), rtol=1e-6, atol=1e-6
    )


def test_a_direction_without_scatter_and_features_far_from_zero():
    training = separable([40, 40], seed=0)
    training.features[:, 3] = 1000.0
    score = fitted("mahalanobis", training)
    own = score.value(*training.inputs)
    assert 6 < own.mean() < 12  # eleven dimensions that scatter
    strange = separable([1, 1], seed=1)
    strange.features[:, 3] = 1010.0
    assert (score.value(*strange.inputs) > own.max()).all()


def test_without_scatter_it_is_the_plain_distance():
    training, others = separable([1, 1, 1], seed=0), strangers(5, 3, seed=1)
    found = fitted("mahalanobis", training).value(*others.inputs)
    plain = torch.cdist(others.features.double(), training.features.double()).amin(dim=1).square()
    torch.testing.assert_close(found, plain)
