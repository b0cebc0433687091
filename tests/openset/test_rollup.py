"""Answers by groups of classes against a slow version, and whether the precision asked for is kept."""

import math

import pytest
import torch
from scipy.stats import beta

from oltr.errors import UserError
from oltr.openset.rollup import (
    CONFIDENCE,
    PRIOR_IMAGES,
    best_groups,
    fit_thresholds,
    group_probabilities,
    roll_up,
)

# Seven classes: 0, 1 and 2, 3 are genera of one family, 4 stands directly below it, 5 is alone in its genus
# and family, 6 has no parent at all.
LINEAGE = torch.tensor([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0], [4, -1, 0], [5, 2, 1], [6, -1, -1]])
CLASSES, LEVELS = LINEAGE.shape


def images(number: int, seed: int, height: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Calibrated probabilities, coarse enough to have ties, and labels drawn from them."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(number, CLASSES, generator=random, dtype=torch.float64) * height
    probabilities = (logits * 4).round().div(4).softmax(dim=1)
    return probabilities, torch.multinomial(probabilities, 1, generator=random)[:, 0]


def best_slowly(row: list[float], level: int) -> tuple[int, float]:
    sums: dict[int, float] = {}
    for number, probability in enumerate(row):
        group = int(LINEAGE[number, level])
        if group >= 0:
            sums[group] = sums.get(group, 0.0) + probability
    group = max(sums, key=lambda each: (sums[each], -each))
    return group, sums[group]


def answer_slowly(row: list[float], thresholds: list[float], rejected: bool) -> tuple[int, int]:
    for level in range(LEVELS):
        group, value = best_slowly(row, level)
        if value >= thresholds[level] and not (level == 0 and rejected):
            return level, group
    return -1, -1


def kept_slowly(hits: list[bool], values: list[float], precision: float) -> bool:
    believed = sum(values) / len(values)
    for_it = sum(hits) + PRIOR_IMAGES * believed
    against = len(hits) - sum(hits) + PRIOR_IMAGES * (1 - believed)
    return beta.sf(precision, for_it, against) >= CONFIDENCE


def fit_slowly(probabilities, labels, precision, rejected) -> list[float]:
    thresholds: list[float] = []
    for level in range(LEVELS):
        asked = []
        for row, label, no in zip(probabilities.tolist(), labels.tolist(), rejected.tolist(), strict=True):
            before = [*thresholds, *[math.inf] * (LEVELS - level)]
            if answer_slowly(row, before, no) == (-1, -1) and not (level == 0 and no):
                group, value = best_slowly(row, level)
                asked.append((value, group == int(LINEAGE[label, level])))
        found = math.inf
        for threshold in {value for value, _ in asked}:
            given = [(value, hit) for value, hit in asked if value >= threshold]
            if kept_slowly([hit for _, hit in given], [value for value, _ in given], precision):
                found = min(found, threshold)
        thresholds.append(found)
    return thresholds


def test_sums_and_the_likeliest_groups():
    probabilities = torch.tensor([[0.05, 0.2, 0.2, 0.15, 0.05, 0.3, 0.05]])
    assert group_probabilities(probabilities, LINEAGE[:, 1])[0].tolist() == pytest.approx([0.25, 0.35, 0.3])
    groups, values = best_groups(probabilities, LINEAGE)
    assert groups.tolist() == [[5, 1, 0]]  # class 5 is the likeliest, but not the genus or family above it
    assert values[0].tolist() == pytest.approx([0.3, 0.35, 0.65])


@pytest.mark.parametrize(
    "thresholds", [[0.5, 0.6, 0.7], [0.9, 0.5, 0.9], [math.inf, math.inf, 0.2], [2, 2, 2]]
)
def test_answers_are_those_of_a_slow_version(thresholds):
    probabilities, _ = images(200, seed=1)
    rejected = torch.rand(200, generator=torch.Generator().manual_seed(2)) < 0.2
    found = roll_up(probabilities, LINEAGE, thresholds, rejected)
    for number, row in enumerate(probabilities.tolist()):
        level, group = answer_slowly(row, thresholds, bool(rejected[number]))
        assert (int(found.levels[number]), int(found.groups[number])) == (level, group)
        if level < 0:
            assert math.isnan(found.probabilities[number])
        else:
            assert float(found.probabilities[number]) == pytest.approx(best_slowly(row, level)[1])


@pytest.mark.parametrize("precision", [0.6, 0.8, 0.9, 0.97])
@pytest.mark.parametrize(("number", "height"), [(150, 2.0), (150, 0.7), (12, 2.0)])
def test_thresholds_are_those_of_a_slow_version(precision, number, height):
    probabilities, labels = images(number, seed=number, height=height)
    rejected = torch.rand(number, generator=torch.Generator().manual_seed(3)) < 0.1
    found = fit_thresholds(probabilities, labels, LINEAGE, precision, rejected)
    assert found == pytest.approx(fit_slowly(probabilities, labels, precision, rejected))


@pytest.mark.parametrize("precision", [0.8, 0.9, 0.95])
def test_answers_to_other_images_keep_the_precision(precision):
    short = []
    for seed in range(40):
        thresholds = fit_thresholds(*images(300, seed), LINEAGE, precision)
        probabilities, labels = images(4000, 1000 + seed)
        found = roll_up(probabilities, LINEAGE, thresholds)
        for level in range(LEVELS):
            here = found.levels == level
            if here.sum() >= 40:
                right = (found.groups == LINEAGE[labels, level])[here].double().mean()
                short.append(precision - float(right))
    assert len(short) > 60
    assert sum(each > 0 for each in short) <= (1 - CONFIDENCE + 0.1) * len(short)
    assert max(short) < 0.1


def test_an_overconfident_network_is_found_out_on_validation_images():
    sure = torch.full((60, CLASSES), 0.01 / 6).index_fill_(1, torch.tensor([0]), 0.99)
    sisters = torch.arange(60) % 2  # half are class 1, of the genus of class 0
    class_level, genus, _ = fit_thresholds(sure, sisters, LINEAGE, 0.9)
    assert math.isinf(class_level)
    assert 0.99 <= genus <= 1
    strangers = torch.full((60,), 6)
    assert all(map(math.isinf, fit_thresholds(sure, strangers, LINEAGE, 0.9)))


def test_without_images_the_levels_answer_nothing():
    nothing = fit_thresholds(torch.zeros(0, CLASSES), torch.zeros(0, dtype=torch.int64), LINEAGE, 0.9)
    assert all(map(math.isinf, nothing))


@pytest.mark.parametrize("precision", [0, 1, -0.5, 95, float("nan")])
def test_precision_that_cannot_be(precision):
    with pytest.raises(UserError, match="between 0 and 1"):
        fit_thresholds(*images(10, 0), LINEAGE, precision)


def test_images_whose_probabilities_are_not_numbers_are_unknown():
    probabilities = torch.full((1, CLASSES), math.nan)
    assert roll_up(probabilities, LINEAGE, [0.1, 0.1, 0.1]).levels.tolist() == [-1]
