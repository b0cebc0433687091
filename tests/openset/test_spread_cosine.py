import numpy as np
import pytest
import torch

from oltr.openset import SpreadCosine, WhitenedCosine
from oltr.openset.spread import spread
from tests.helpers.separable import separable, strangers


@pytest.mark.parametrize(("dims", "largest"), [(1, 1), (5, 1), (12, 4), (64, 19), (5000, 1500)])
def test_spread_is_the_sum_over_that_of_the_largest(dims, largest):
    features = torch.randn(9, dims, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = []
    for row in features.numpy():
        activations = np.maximum(row, 0)
        expected.append(activations.sum() / max(np.sort(activations)[-largest:].sum(), 1e-12))
    np.testing.assert_allclose(spread(features, 70).squeeze(1).numpy(), expected)


def test_even_activations_are_spread_and_a_single_one_is_not():
    features = torch.stack([torch.ones(10), torch.eye(10)[0], -torch.ones(10)])
    assert spread(features, 70).flatten().tolist() == pytest.approx([10 / 3, 1, 0])


def test_the_score_is_the_cosine_and_four_tenths_of_the_spread():
    training, others = separable([40, 20, 9], seed=0), strangers(5000, 3, seed=2)
    cosine, both = (
        kind().fit(training.features, training.logits, training.labels).value(*others.inputs)
        for kind in (WhitenedCosine, SpreadCosine)
    )
    found = spread(others.features.double(), 70).squeeze(1)
    torch.testing.assert_close(both, cosine + 0.4 * found)
