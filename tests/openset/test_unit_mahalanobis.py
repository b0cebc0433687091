import numpy as np
import pytest
import torch

from tests.helpers.separable import fitted, outputs, separable, strangers
from tests.openset.test_mahalanobis import loop


def directions(features, centre=None):
    """Unit rows, less a centre (their mean unless given), as unit rows again; and that centre."""
    x = features.double().numpy()
    x = np.stack([row / np.sqrt((row**2).sum()) for row in x])
    centre = x.mean(axis=0) if centre is None else centre
    return torch.from_numpy(np.stack([row / np.sqrt((row**2).sum()) for row in x - centre])), centre


@pytest.mark.parametrize("counts", [[50, 20, 5], [3, 2, 1], [2, 0, 2], [4000, 300, 1]])
def test_it_is_the_mahalanobis_distance_of_directions(counts):
    training, others = separable(counts, seed=0), strangers(8, len(counts), seed=1)
    seen, centre = directions(training.features)
    expected = loop(outputs(training.logits, training.labels, seen), directions(others.features, centre)[0])
    found = fitted("unit-mahalanobis", training).value(*others.inputs)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_the_length_of_a_feature_does_not_matter():
    training, others = separable([40, 20, 5], seed=0), strangers(9, 3, seed=1)
    score = fitted("unit-mahalanobis", training)
    longer = outputs(others.logits, features=others.features * torch.rand(9, 1).add(0.1).mul(50))
    torch.testing.assert_close(score.value(*longer.inputs), score.value(*others.inputs), rtol=1e-4, atol=1e-6)
