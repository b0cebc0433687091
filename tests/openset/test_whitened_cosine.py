import numpy as np
import pytest
import torch
from sklearn.covariance import LedoitWolf

from tests.helpers.separable import fitted, outputs, separable, strangers


@pytest.mark.parametrize("counts", [[50, 20, 5], [12, 3, 0, 7]])
def test_it_is_the_largest_cosine_of_a_loop_with_the_symmetric_root(counts):
    training, others = separable(counts, seed=0), strangers(8, len(counts), seed=1)
    x, labels = training.features.double().numpy(), training.labels.numpy()
    means = {k: x[labels == k].mean(axis=0) for k in set(labels)}
    residuals = np.stack([row - means[k] for row, k in zip(x, labels, strict=True)])
    covariance = LedoitWolf(assume_centered=True).fit(residuals).covariance_
    variances, axes = np.linalg.eigh(covariance)
    root = axes @ np.diag(variances**-0.5) @ axes.T  # another root of the inverse: the same cosines
    middle = x.mean(axis=0)
    expected = []
    for row in others.features.double().numpy():
        v = root @ (row - middle)
        directions = [root @ (mean - middle) for mean in means.values()]
        expected.append(max(v @ d / np.linalg.norm(v) / np.linalg.norm(d) for d in directions))
    found = fitted("whitened-cosine", training).value(*others.inputs)
    torch.testing.assert_close(found, torch.tensor(np.array(expected)), rtol=1e-5, atol=1e-6)


def test_stretched_and_moved_features_have_the_same_values():
    training, others = separable([40, 20, 9], seed=0), strangers(30, 3, seed=2)
    before = fitted("whitened-cosine", training).value(*others.inputs)
    moved = outputs(training.logits, training.labels, 3 * training.features + 5)
    after = fitted("whitened-cosine", moved).value(3 * others.features + 5, others.logits)
    torch.testing.assert_close(before, after, rtol=1e-4, atol=1e-4)


def test_one_class_tells_nothing_and_a_feature_in_the_middle_is_no_class():
    training, others = separable([9], seed=0), strangers(5, 1, seed=1)
    assert fitted("whitened-cosine", training).value(*others.inputs).isfinite().all()
    training = separable([9, 9], seed=0)
    middle = training.features.mean(dim=0, keepdim=True)
    value = fitted("whitened-cosine", training).value(middle, training.logits[:1])
    assert -1 <= float(value) <= 1
