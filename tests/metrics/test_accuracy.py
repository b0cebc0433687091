import math

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from oltr.metrics.accuracy import group_means, mean, per_class_accuracy, per_class_f1


def drawn(seed, n=200, k=7):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(-1, k - 1, (n,), generator=generator)  # the last class has no images
    return torch.randint(-1, k, (n,), generator=generator), labels, k


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_loop(seed):
    predictions, labels, k = drawn(seed, n=200 if seed else 6)
    accuracy, f1 = per_class_accuracy(predictions, labels, k), per_class_f1(predictions, labels, k)
    pairs = [(p, y) for p, y in zip(predictions.tolist(), labels.tolist(), strict=True) if y != -1]
    for c in range(k):
        mine = [p == y for p, y in pairs if y == c]
        if not mine:
            assert math.isnan(accuracy[c]) and math.isnan(f1[c])
            continue
        wrongly_c = sum(p == c != y for p, y in pairs)
        assert accuracy[c].item() == pytest.approx(sum(mine) / len(mine))
        expected = 2 * sum(mine) / (2 * sum(mine) + wrongly_c + len(mine) - sum(mine))
        assert f1[c].item() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_f1_equals_scikit_learn(seed):
    predictions, labels, k = drawn(seed)
    predictions, labels = predictions[labels >= 0].clamp(min=0), labels[labels >= 0]
    expected = f1_score(labels, predictions, labels=range(k - 1), average=None, zero_division=0)
    np.testing.assert_allclose(per_class_f1(predictions, labels, k)[:-1], expected)
    assert mean(per_class_f1(predictions, labels, k)) == pytest.approx(expected.mean())


def test_group_means_are_over_classes_with_images():
    values = torch.tensor([1.0, torch.nan, 0.5, torch.nan])
    means = group_means(values, np.array(["many", "many", "medium", "few"]))
    assert means == {"many": 1.0, "medium": 0.5, "few": None, "overall": 0.75}
