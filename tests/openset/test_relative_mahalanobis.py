import numpy as np
import pytest
import torch
from sklearn.covariance import ledoit_wolf

from oltr.metrics.detection import auroc
from oltr.runs.outputs import Outputs
from tests.helpers.separable import fitted, separable, strangers
from tests.openset.test_mahalanobis import loop


@pytest.mark.parametrize("counts", [[50, 20, 5], [3, 2, 1], [2, 0, 2], [4000, 300, 1]])
def test_it_is_a_difference_of_two_loops(counts):
    training, others = separable(counts, seed=0), strangers(8, len(counts), seed=1)
    x, far = training.features.double().numpy(), others.features.double().numpy()
    inverse = np.linalg.inv(ledoit_wolf(x)[0])
    whole = [(row - x.mean(axis=0)) @ inverse @ (row - x.mean(axis=0)) for row in far]
    found = fitted("relative-mahalanobis", training).value(*others.inputs)
    expected = loop(training, others.features) - torch.tensor(whole)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_what_classes_do_not_differ_in_hardly_counts():
    def with_noise(some: Outputs, seed: int) -> Outputs:
        noise = 3 * torch.randn(len(some), 200, generator=torch.Generator().manual_seed(seed))
        return Outputs(some.logits, some.labels, torch.cat([0.3 * some.features, noise], dim=1))

    training = with_noise(separable([400] * 5, seed=0), 1)
    known, unseen = with_noise(separable([60] * 5, seed=2), 3), with_noise(strangers(300, 5, seed=4), 5)
    plain, relative = (fitted(name, training) for name in ("mahalanobis", "relative-mahalanobis"))
    one, two = (auroc(score(*known.inputs), score(*unseen.inputs)) for score in (plain, relative))
    assert two > one
