import copy
import math

import pytest
import torch

from oltr.metrics.accuracy import group_means, per_class_accuracy
from oltr.metrics.detection import auroc
from oltr.metrics.fmeasure import f_measure
from oltr.metrics.running import OpenF, OpenSetAUROC, ShotAccuracy
from oltr.metrics.shots import shot_groups

COUNTS = [300, 101, 100, 60, 19, 1]


def batches(seed, sizes=(16, 1, 7)):
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(n, 6, generator=generator), torch.randint(-1, 6, (n,), generator=generator))
        for n in sizes
    ]


def joined(parts):
    return torch.cat([logits for logits, _ in parts]), torch.cat([labels for _, labels in parts])


def check(accuracy, open_f, parts):
    logits, labels = joined(parts)
    predictions = logits.argmax(1)
    expected = group_means(per_class_accuracy(predictions, labels, 6), shot_groups(COUNTS))
    for name, value in accuracy.compute().items():
        assert value.item() == pytest.approx(expected[name], abs=1e-6)
    predictions[logits.softmax(1).amax(1) < 0.4] = -1
    assert open_f.compute().item() == pytest.approx(f_measure(predictions, labels), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_batches_and_merged_copies_equal_the_pure_functions(seed):
    halves = batches(seed), batches(seed + 100)
    pairs = []
    for half in halves:
        accuracy, open_f = ShotAccuracy(COUNTS), OpenF(0.4)
        for logits, labels in half:
            accuracy.update(logits, labels)
            open_f.update(logits, labels)
        check(copy.deepcopy(accuracy), copy.deepcopy(open_f), half)  # a computed value would be kept
        pairs.append((accuracy, open_f))
    for one, other in zip(*pairs, strict=True):
        one.merge_state(other)
    check(*pairs[0], halves[0] + halves[1])


def test_forward_gives_the_batch_and_reset_forgets():
    accuracy = ShotAccuracy(COUNTS)
    right = torch.eye(6)
    assert accuracy(right, torch.arange(6))["overall"] == 1.0
    assert accuracy(right, torch.arange(6).flip(0))["overall"] == 0.0
    assert accuracy.compute()["overall"] == 0.5
    accuracy.reset()
    assert accuracy.total.sum() == 0


def test_an_empty_group_is_nan():
    accuracy = ShotAccuracy([300, 5], rule="released")
    accuracy.update(torch.eye(2).bfloat16(), torch.tensor([0, 0]))
    values = accuracy.compute()
    assert math.isnan(values["medium"]) and math.isnan(values["few"])
    assert values["many"] == values["overall"] == 0.5


def test_states_sum_across_processes():
    for metric in (ShotAccuracy(COUNTS), OpenF(0.1)):
        assert {reduction.__name__ for reduction in metric._reductions.values()} == {"dim_zero_sum"}


def test_the_auroc_of_batches_and_merged_copies_is_that_of_all_scores():
    metrics, seen = [], []
    for seed in (0, 100):
        metrics.append(OpenSetAUROC())
        for logits, labels in batches(seed):
            scores = -logits.amax(dim=1)
            metrics[-1].update(scores, labels)
            seen.append((scores, labels))
    metrics[0].merge_state(metrics[1])
    scores, labels = joined(seen)
    expected = auroc(scores[labels != -1], scores[labels == -1])
    assert metrics[0].compute().item() == pytest.approx(expected, abs=1e-6)
    assert {reduction.__name__ for reduction in metrics[0]._reductions.values()} == {"dim_zero_cat"}
