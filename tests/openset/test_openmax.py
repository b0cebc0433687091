"""OpenMax against a loop with SciPy's Weibull, and its manners with rare classes."""

import math

import pytest
import torch
from scipy.stats import weibull_min

from oltr.openset import SCORES
from oltr.openset.threshold import choose_threshold
from oltr.openset.weibull import NO_TAIL, fit_tail, weibull_cdf
from tests.helpers.separable import fitted, outputs, row, separable, strangers


def distance(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def mean(rows):
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def weibull(distances, size):
    """The cumulative distribution of the largest distances above the next one."""
    rising = sorted(distances)
    begin = rising[-size - 1]
    shape, _, scale = weibull_min.fit([d - begin for d in rising[-size:]], floc=0)
    return lambda d: weibull_min.cdf(d, shape, loc=begin, scale=scale)


def loop(training, others):
    """The probabilities of "unknown", image by image and class by class."""
    classes = training.logits.shape[1]
    right = {k: [] for k in range(classes)}
    every = {k: [] for k in range(classes)}
    for v, label in zip(training.logits.tolist(), training.labels.tolist(), strict=True):
        every[label].append(v)
        if max(v) == v[label]:
            right[label].append(v)
    home = {k: right[k] or every[k] for k in range(classes)}
    own = {}
    for k in range(classes):
        n = len(right[k])
        own[k] = [distance(v, mean(right[k])) * math.sqrt(n / (n - 1)) for v in right[k]] if n > 1 else []
    together = [d for k in range(classes) for d in own[k]]
    pooled = weibull(together, max(len(together) // 20, 5))
    tail = {k: weibull(own[k], min(len(own[k]) // 20, 20)) if len(own[k]) >= 200 else pooled for k in own}
    found = []
    for v in others.logits.tolist():
        top = sorted(range(classes), key=lambda k: -v[k])[:2]
        changed, unknown = list(v), 0.0
        for place, k in enumerate(top):
            d = distance(v, mean(home[k])) / math.sqrt(1 + 1 / len(home[k]))
            given = (len(top) - place) / len(top) * tail[k](d) * max(v[k], 0)
            changed[k] -= given
            unknown += given
        found.append(math.exp(unknown) / (math.exp(unknown) + sum(math.exp(z) for z in changed)))
    return torch.tensor(found).double()


@pytest.mark.parametrize(
    "counts",
    [[500, 210, 150, 30, 5, 1], [12, 9, 3], [300, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]],
    ids=["both tails", "pooled alone", "more classes than give way"],
)
def test_it_is_the_probability_of_a_loop(counts):
    training = separable(counts, seed=0)
    others = separable([4] * len(counts), seed=1, height=3.0)  # some near, some far
    score = fitted("openmax", training)
    expected = loop(training, others)
    torch.testing.assert_close(score.value(*others.inputs), expected, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(score(*others.inputs), expected.logit(), rtol=1e-3, atol=1e-4)
    assert 0.05 < expected.median() < 0.95 or expected.max() - expected.min() > 0.5


def test_a_class_without_correct_images_stands_at_the_mean_of_all_its_images():
    training = separable([60, 40, 8], seed=0)
    training.logits[-8:, 2] -= 30
    assert (training.logits.argmax(1) == training.labels)[-8:].sum() == 0
    score, others = fitted("openmax", training), separable([5, 5, 5], seed=1, height=4.0)
    torch.testing.assert_close(score.value(*others.inputs), loop(training, others), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("counts", [[500, 100, 20, 3, 3, 3], [3] * 40, [1000] * 5 + [3] * 30])
@pytest.mark.parametrize("line", ["default", "rate"])
def test_rare_classes_are_not_called_unknown(counts, line):
    score = fitted("openmax", separable(counts, seed=0))
    threshold = score.default_threshold
    if line == "rate":
        known = separable([10] * len(counts), seed=1)
        threshold = choose_threshold(score, score.value(*known.inputs), 0.05)
    test, unseen = separable([50] * len(counts), seed=2), strangers(500, len(counts), seed=3)
    rejected = score.is_unknown(score.value(*test.inputs), threshold)
    rare = torch.tensor(counts)[test.labels] == 3
    assert rejected[rare].double().mean() < 0.4
    assert rejected.double().mean() < 0.1
    if line == "default":
        assert score.is_unknown(score.value(*unseen.inputs), threshold).double().mean() > 0.75


def test_an_image_has_the_same_score_alone_and_in_a_batch():
    score, test = fitted("openmax", separable([200, 40, 3], seed=0)), separable([9, 9, 9], seed=1)
    whole = score.value(*test.inputs)
    alone = torch.cat([score.value(*row(test, i).inputs) for i in range(27)])
    torch.testing.assert_close(alone, whole, rtol=1e-12, atol=0)


def test_log_odds_keep_the_order_where_probabilities_are_one():
    score = fitted("openmax", separable([200, 200, 200], seed=0))
    far = outputs(torch.tensor([[90.0, 89.0, 88.0], [190.0, 189.0, 188.0]]))
    assert score.value(*far.inputs).tolist() == [1, 1] and score(*far.inputs).diff() > 0


def test_without_any_distance_it_is_the_energy():
    training, others = separable([1, 1, 1], seed=0), strangers(6, 3, seed=1)
    score = fitted("openmax", training)
    torch.testing.assert_close(score(*others.inputs), -SCORES["energy"]().value(*others.inputs))


def test_the_tail_is_scipys():
    distances = torch.randn(400, generator=torch.Generator().manual_seed(0)).abs().numpy()
    begin, shape, scale = fit_tail(distances, 40, 1e-3)
    assert begin == pytest.approx(sorted(distances)[-41])
    points = torch.linspace(0, 5, 50).double()
    ours = weibull_cdf(points, *torch.tensor([begin, shape, scale], dtype=torch.float64))
    theirs = weibull_min.cdf(points.numpy(), shape, loc=begin, scale=scale)
    torch.testing.assert_close(ours, torch.from_numpy(theirs), rtol=1e-9, atol=1e-12)
    assert (points < begin).sum() > 5 and (ours[points < begin] == 0).all()


def test_tails_of_little():
    def tail(*distances):
        return fit_tail(torch.tensor(distances).numpy(), 5, 1e-3)

    assert tail() == NO_TAIL
    assert tail(2.0) == (2.0, 1.0, 1e-3)
    assert tail(2.0, 2.0, 2.0) == (2.0, 1.0, 1e-3)
    assert tail(1.0, 3.0) == (1.0, 1.0, 2.0)
    far = weibull_cdf(torch.tensor([0.0, 1e9]), *torch.tensor(NO_TAIL))
    assert far.tolist() == [0, 0]
