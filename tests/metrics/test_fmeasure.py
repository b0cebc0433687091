import pytest
import torch

from oltr.metrics.fmeasure import f_measure, f_measure_2019


def loop(predictions, labels, rejected_counts):
    true_positive = false_positive = false_negative = 0
    for prediction, label in zip(predictions.tolist(), labels.tolist(), strict=True):
        if label != -1 and prediction == label:
            true_positive += 1
        elif label != -1 and (prediction != -1 or rejected_counts):
            false_positive += 1
        elif label == -1 and prediction != -1:
            false_negative += 1
    if true_positive == 0:
        return 0.0
    precision = true_positive / (true_positive + false_positive)
    recall = true_positive / (true_positive + false_negative)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 400])
@pytest.mark.parametrize("seed", range(5))
def test_both_forms_equal_the_loop(size, seed):
    generator = torch.Generator().manual_seed(seed)
    predictions, labels = torch.randint(-1, 3, (2, size), generator=generator)
    assert f_measure(predictions, labels) == pytest.approx(loop(predictions, labels, True), abs=1e-9)
    assert f_measure_2019(predictions, labels) == pytest.approx(loop(predictions, labels, False), abs=1e-9)


def test_rejecting_known_images_lowers_only_the_corrected_form():
    labels = torch.tensor([0, 1, -1])
    assert f_measure(torch.tensor([0, -1, -1]), labels) == pytest.approx(2 / 3)
    assert f_measure_2019(torch.tensor([0, -1, -1]), labels) == 1.0


@pytest.mark.parametrize("form", [f_measure, f_measure_2019])
@pytest.mark.parametrize(
    ("predictions", "labels"), [([], []), ([-1], [-1]), ([-1], [0]), ([1], [0]), ([0], [-1])]
)
def test_nothing_right_gives_zero(form, predictions, labels):
    assert form(torch.tensor(predictions, dtype=torch.int64), torch.tensor(labels, dtype=torch.int64)) == 0.0
