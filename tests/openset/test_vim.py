import math

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from oltr.openset import SCORES
from tests.helpers.separable import fitted, outputs, separable, strangers


def loop(training, others, principal):
    """scikit-learn's principal components, and the length of what they leave, image by image."""
    pca = PCA(n_components=principal).fit(training.features.double().numpy())

    def residual(x):
        x = x - pca.mean_
        for direction in pca.components_:
            x = x - (x @ direction) * direction
        return float(np.sqrt((x * x).sum()))

    own = sum(residual(x) for x in training.features.double().numpy())
    alpha = sum(max(row) for row in training.logits.tolist()) / own
    return [
        alpha * residual(x) - math.log(sum(math.exp(z) for z in logits))
        for x, logits in zip(others.features.double().numpy(), others.logits.tolist(), strict=True)
    ]


@pytest.mark.parametrize(("counts", "principal"), [([50, 20, 5], 6), ([3, 3, 1], 3), ([2, 1], 1)])
def test_it_is_the_residual_of_a_loop_less_the_energy(counts, principal):
    # With few images they fill fewer dimensions: one less than there are images.
    training, others = separable(counts, seed=0), strangers(8, len(counts), seed=1)
    found = fitted("vim", training).value(*others.inputs)
    torch.testing.assert_close(found, torch.tensor(loop(training, others, principal)).double())


def test_without_scatter_it_is_the_distance_less_the_energy():
    constant = outputs(torch.ones(30, 2), torch.arange(30) % 2, torch.full((30, 4), 0.3))
    strange = outputs(torch.tensor([[1.0, 2.0]]), features=torch.tensor([[0.3, 0.3, 3.3, 4.3]]))
    expected = 5 - math.log(math.e + math.e**2)
    assert fitted("vim", constant).value(*strange.inputs).item() == pytest.approx(expected, rel=1e-6)


def test_negative_logits_do_not_turn_the_residual_round():
    training = separable([20, 20], seed=0)
    training.logits.sub_(100)
    score = fitted("vim", training)
    assert score.learned.alpha == 0
    torch.testing.assert_close(score.value(*training.inputs), -SCORES["energy"]().value(*training.inputs))
