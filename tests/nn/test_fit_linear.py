"""The direct fit of a linear head: the minimum that scikit-learn finds, and the prior's effect."""

from importlib import import_module

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from oltr.nn import fit_linear

MODULE = import_module("oltr.nn.fit_linear")  # the package has the function by this name


def blobs(seed=0, counts=(60, 20, 6)):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(len(counts), 5))
    features = np.concatenate(
        [centre + rng.normal(size=(n, 5)) for centre, n in zip(centres, counts, strict=True)]
    )
    labels = np.repeat(np.arange(len(counts)), counts)
    return torch.from_numpy(features).float(), torch.from_numpy(labels)


@pytest.mark.parametrize("decay", [1e-2, 1e-1])
def test_without_a_prior_it_is_logistic_regression(decay):
    features, labels = blobs()
    weight, bias, _ = fit_linear(features, labels, torch.zeros(3), decay=decay, iterations=500)
    oracle = LogisticRegression(C=1 / (decay * len(labels)), tol=1e-8, max_iter=5000)
    oracle.fit(features.numpy(), labels.numpy())
    found = (features @ weight.T + bias).softmax(dim=1)
    np.testing.assert_allclose(found.numpy(), oracle.predict_proba(features.numpy()), atol=2e-3)


def test_the_loss_is_that_of_the_formula():
    features, labels = blobs()
    prior = torch.tensor([-0.3, -1.4, -2.6])
    weight, bias, loss = fit_linear(features, labels, prior, decay=0.01)
    logits = features @ weight.T + bias + prior
    expected = -logits.log_softmax(dim=1)[range(len(labels)), labels].mean() + 0.005 * (weight**2).sum()
    assert loss == pytest.approx(float(expected), rel=1e-5)


def test_a_prior_of_the_frequencies_favours_the_rare_classes():
    features, labels = blobs(counts=(200, 10, 5))
    rare = labels > 0

    def right(prior):
        weight, bias, _ = fit_linear(features, labels, prior, decay=1e-2)
        return ((features @ weight.T + bias).argmax(dim=1) == labels)[rare].float().mean()

    frequencies = torch.bincount(labels).float() / len(labels)
    assert right(frequencies.log()) > right(torch.zeros(3))


def test_the_same_data_give_the_same_head():
    features, labels = blobs()
    first, second = (fit_linear(features, labels, torch.zeros(3)) for _ in range(2))
    assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])


def test_what_is_known_of_each_image_is_left_to_whoever_knows_it():
    features, labels = blobs()
    known = torch.zeros(len(labels), 3)
    known[range(len(labels)), labels] = 50.0
    weight, bias, loss = fit_linear(features, labels, known, decay=0.01)
    assert weight.abs().max() < 1e-4 and bias.abs().max() < 1e-4 and loss < 1e-6
    same = fit_linear(features, labels, torch.tensor([0.5, 0.0, -1.0]).expand(len(labels), 3), decay=0.01)
    torch.testing.assert_close(
        same[0], fit_linear(features, labels, torch.tensor([0.5, 0.0, -1.0]), decay=0.01)[0]
    )


@pytest.mark.parametrize("at_once", [1, 20, 10**6])
def test_a_fit_in_blocks_is_the_same(monkeypatch, at_once):
    features, labels = blobs()
    beside = torch.randn(len(labels), 3, generator=torch.Generator().manual_seed(0))
    expected = fit_linear(features, labels, beside, decay=0.1, iterations=500)
    monkeypatch.setattr(MODULE, "AT_ONCE", at_once)
    asked = []

    def rows(block):
        asked.append(len(beside[block]))
        return beside[block]

    for prior in beside, rows:
        weight, bias, loss = fit_linear(features, labels, prior, decay=0.1, iterations=500)
        torch.testing.assert_close(weight, expected[0], atol=1e-4, rtol=0)
        torch.testing.assert_close(bias, expected[1], atol=1e-4, rtol=0)
        assert loss == pytest.approx(expected[2], abs=1e-6)
    assert max(asked) == min(len(labels), max(at_once // 3, 1))
