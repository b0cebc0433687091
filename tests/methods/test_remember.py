"""The memory beside a trained classifier: its weight against a search, when it stays out, what it gains."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.nn import functional as F

from oltr.methods import weigh_memory as module
from oltr.methods.remember import RARE, remember
from oltr.methods.weigh_memory import weigh_memory
from oltr.nn.direct_feature import DirectFeature
from oltr.nn.heads import LinearHead


def terms_of(logits, cosines):
    """Terms of images that are told by their number."""

    def terms(direct):
        rows = direct[:, 0].long()
        return logits[rows], cosines[rows]

    return terms, torch.arange(len(logits))[:, None].float()


def example(seed=0, images=60, classes=4, use=1.0, sure=1.0):
    """Logits and cosines that both tell of the class, the latter as far as `use` says."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate(
        [np.arange(classes), rng.choice(classes, images - classes, p=[0.5, 0.3, 0.15, 0.05])]
    )
    own = np.eye(classes)[labels]
    logits = sure * (1.5 * own + rng.normal(size=own.shape))
    cosines = 0.3 * use * own + 0.2 * rng.normal(size=own.shape)
    return torch.tensor(logits), torch.tensor(cosines), torch.tensor(labels)


def weighed(logits, cosines, labels):
    terms, numbers = terms_of(logits, cosines)
    return weigh_memory(terms, numbers, labels)


def searched(logits, cosines, labels):
    """The best (a, b) of the mean loss over classes, by scipy, and each gain over the best a alone."""
    z, c, y = logits.numpy(), cosines.numpy(), labels.numpy()
    weights = np.array([1 / (len(set(y)) * (y == label).sum()) for label in y])

    def losses(a, b):
        joint = a * z + b * c
        joint = joint - joint.max(axis=1, keepdims=True)
        return np.log(np.exp(joint).sum(axis=1)) - joint[np.arange(len(y)), y]

    options = {"method": "Nelder-Mead", "options": {"xatol": 1e-8, "fatol": 1e-12, "maxiter": 5000}}
    both = minimize(lambda p: weights @ losses(*p), [1.0, 0.0], **options).x
    alone = minimize(lambda p: weights @ losses(p[0], 0), [1.0], **options).x
    return both, weights, losses(alone[0], 0) - losses(*both)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sure", [0.3, 1.0, 5.0])
def test_the_weight_is_the_minimum_over_temperature_and_memory(seed, sure, monkeypatch):
    given = example(seed, sure=sure)
    (a, b), weights, gains = searched(*given)
    found = weighed(*given)
    assert found.weight == pytest.approx(b / a, rel=1e-3) and b > 0
    assert found.gain == pytest.approx(weights @ gains, abs=1e-6)
    assert found.error == pytest.approx(math.sqrt(weights**2 @ gains**2), abs=1e-6)
    monkeypatch.setattr(module, "AT_A_TIME", 7)
    assert weighed(*given).weight == pytest.approx(found.weight, rel=1e-6)


def test_a_temperature_is_no_gain_of_the_memory():
    """Logits that are far too sure, beside cosines that say nothing."""
    logits, _, labels = example(1, images=400, sure=10)
    noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert weighed(logits, noise, labels).weight == 0


def test_a_memory_that_misleads_stays_out():
    logits, cosines, labels = example(2, images=400, use=-1)
    assert weighed(logits, cosines, labels) == module.Weighed(0.0, 0.0, 0.0)


def test_cosines_without_information_hardly_ever_come_in():
    times = sum(weighed(*example(seed, images=100, use=0.0)).weight > 0 for seed in range(40))
    assert times <= 6  # half of 16 %, those above the error on the side of a gain


@pytest.mark.parametrize("images", [1, 2])
def test_one_image_is_never_enough(images):
    logits, cosines, labels = (each[:1].repeat_interleave(images, 0) for each in example(3))
    assert weighed(logits[:1], cosines[:1], labels[:1]).weight == 0


def test_where_all_are_right_the_numbers_stay_finite():
    labels = torch.arange(4).repeat(5)
    own = torch.eye(4, dtype=torch.float64)[labels]
    found = weighed(3 * own, own, labels)
    assert math.isfinite(found.weight) and math.isfinite(found.gain)


class Trained(torch.nn.Module):
    """A network of which the head alone is needed."""

    def __init__(self, head, dims):
        super().__init__()
        self.head, self.direct_feature = head, DirectFeature(dims)


def drawn(counts, seed, dims=8):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(size=(len(counts), dims))
    labels = np.repeat(np.arange(len(counts)), counts)
    features = 1.2 * centres[labels] + rng.normal(size=(len(labels), dims)) + 3.0
    return torch.from_numpy(features).float(), torch.from_numpy(labels)


def test_a_poor_classifier_is_mended_by_class_means():
    counts = [60, 30, 12, 5, 3, 0]
    trained, validation, test = drawn(counts, 0), drawn([10] * 5, 1), drawn([200] * 5, 2)
    torch.manual_seed(0)
    network = Trained(LinearHead(8, 6), 8).requires_grad_(False)
    # Rows of two classes learned nothing.
    x, y = trained
    means = torch.stack([x[y == k].mean(dim=0) if k < 3 else x.mean(dim=0) for k in range(6)]) - x.mean(dim=0)
    network.head.classifier.weight.copy_(means)
    network.head.classifier.bias.copy_(-means @ x.mean(dim=0))
    before = network.head(test[0]).logits
    said = remember(network, trained, validation, 6)
    logits, memory = network.head(test[0]).logits, network.head.added_memory
    assert said.startswith("memory of class means beside the classifier: weight ")

    def accuracy(z):
        return (z.argmax(dim=1) == test[1]).double().mean().item()

    assert accuracy(logits) > accuracy(before) + 0.1
    # Rarer classes have the larger weight, a class without images none.
    weight = memory.weights / memory.weights[0] * math.sqrt(1 + RARE / 60)
    torch.testing.assert_close(weight[:5], (1 + RARE / torch.tensor(counts[:5])).sqrt())
    assert memory.weights[5] == 0 and torch.equal(logits[:, 5], before[:, 5])


def test_beside_a_classifier_that_needs_none_there_is_none():
    trained, validation = drawn([60, 30, 12], 0), drawn([10] * 3, 1)
    network = Trained(LinearHead(8, 3), 8).requires_grad_(False)
    network.head.classifier.weight.copy_(20 * F.normalize(torch.randn(3, 8), dim=1))
    names = set(network.head.state_dict())
    worst = (
        validation[0],
        (network.head(validation[0]).logits.argmax(dim=1)),
    )  # the classifier is always right
    assert "no clear gain" in remember(network, trained, worst, 3)
    assert set(network.head.state_dict()) == names
