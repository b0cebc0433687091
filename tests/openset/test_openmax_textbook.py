"""OpenMax as published, against a loop with SciPy's Weibull, and what it makes of rare classes."""

import math

import pytest
import torch
from scipy.stats import weibull_min

from oltr.openset import SCORES
from oltr.openset.weibull import fit_whole_tail, weibull_cdf
from tests.helpers.separable import fitted, separable
from tests.openset.test_openmax import distance, mean

NAME = "openmax-textbook"


def tail(distances):
    """The distribution of the 20 largest distances, moved such that the smallest of them is 1."""
    largest = sorted(distances)[-20:]
    if max(largest) - min(largest) < 1e-3:
        return lambda d: float(d > max(largest) + 0.1)  # a step, seen from afar
    shape, _, scale = weibull_min.fit([d - min(largest) + 1 for d in largest], floc=0)
    return lambda d: weibull_min.cdf(d - min(largest) + 1, shape, scale=scale)


def loop(training, others):
    """The probabilities of "unknown", image by image and class by class."""
    classes = training.logits.shape[1]
    right = {k: [] for k in range(classes)}
    for v, label in zip(training.logits.tolist(), training.labels.tolist(), strict=True):
        if max(v) == v[label]:
            right[label].append(v)
    home = {k: mean(right[k]) for k in right if right[k]}
    tails = {k: tail([distance(v, home[k]) for v in right[k]]) for k in home}
    found = []
    for v in others.logits.tolist():
        top = sorted(range(classes), key=lambda k: -v[k])[:10]
        changed, unknown = list(v), 0.0
        for place, k in enumerate(top):
            far = tails[k](distance(v, home[k])) if k in home else 0.0
            given = (len(top) - place) / len(top) * far * v[k]  # a negative logit takes from the unknown
            changed[k] -= given
            unknown += given
        found.append(math.exp(unknown) / (math.exp(unknown) + sum(math.exp(z) for z in changed)))
    return torch.tensor(found).double()


@pytest.mark.parametrize(
    "counts",
    [[500, 210, 150, 30, 5, 1], [12, 9, 3], [300, 25] + [3] * 12],
    ids=["long and short tails", "few classes", "more classes than give way"],
)
def test_it_is_the_probability_of_a_loop(counts):
    training = separable(counts, seed=0)
    others = separable([4] * len(counts), seed=1, height=3.0)  # some near, some far
    score, expected = fitted(NAME, training), loop(training, others)
    torch.testing.assert_close(score.value(*others.inputs), expected, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(score(*others.inputs), expected.logit(), rtol=1e-3, atol=1e-4)
    assert expected.max() - expected.min() > 0.3


def test_a_class_without_correct_images_gives_nothing():
    training = separable([60, 40, 8], seed=0)
    training.logits[-8:, 2] -= 30
    score, others = fitted(NAME, training), separable([5, 5, 5], seed=1, height=4.0)
    torch.testing.assert_close(score.value(*others.inputs), loop(training, others), rtol=1e-4, atol=1e-7)


def test_it_rejects_far_more_known_images_than_the_pooled_form():
    training, test = separable([500, 100, 40, 10, 3, 3], seed=0), separable([100] * 6, seed=1)
    rejected = {}
    for name in (NAME, "openmax"):
        score = fitted(name, training)
        assert score.default_threshold == 0.5
        unknown = score.is_unknown(score.value(*test.inputs), 0.5).double()
        rejected[name] = unknown.mean().item(), unknown[test.labels >= 4].mean().item()
    assert rejected[NAME][0] > 0.3 and rejected[NAME][1] > 0.9  # three images are no tail
    assert rejected["openmax"][0] < 0.1 and rejected["openmax"][1] < 0.4


def test_the_tail_of_little_is_a_step():
    assert fit_whole_tail(torch.tensor([2.0]).numpy(), 20, 1e-3) == (2.0, 1.0, 1e-3)
    assert fit_whole_tail(torch.tensor([2.0, 2.0]).numpy(), 20, 1e-3) == (2.0, 1.0, 1e-3)
    step = torch.tensor([2.0, 1.0, 1e-3])
    assert weibull_cdf(torch.tensor([1.9, 2.0, 2.1]), *step).tolist() == [0, 0, 1]


def test_both_forms_are_there_by_name():
    assert SCORES["openmax"]().info.title != SCORES[NAME]().info.title
    training, test = separable([60, 40, 8], seed=0), separable([9, 9, 9], seed=1)
    assert (fitted(NAME, training)(*test.inputs) != fitted("openmax", training)(*test.inputs)).all()
