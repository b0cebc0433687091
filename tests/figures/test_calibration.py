"""Reliability in bins of equal mass: by hand, beside scikit-learn, and with equal confidences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve

from oltr.errors import UserError
from oltr.figures.calibration import calibration, calibration_figure
from oltr.openset import SCORES
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import as_png, split, splits


def sure_of(probabilities, right):
    """Two-class outputs that give class 0 these probabilities, each above ½."""
    first = torch.tensor(probabilities, dtype=torch.float64)
    logits = torch.stack([first.log(), (1 - first).log()], dim=1)
    labels = 1 - torch.tensor(right).long()
    return {"test": Outputs(logits, labels, torch.zeros(len(labels), 1))}


def test_by_hand():
    run = calibration(sure_of([0.9, 0.6, 0.8, 0.7], [True, False, False, True]), bins=2)
    assert run.images.tolist() == [2, 2]
    np.testing.assert_allclose(run.confidence, [0.65, 0.85])
    np.testing.assert_allclose(run.accuracy, [0.5, 0.5])
    assert run.error == pytest.approx(0.5 * 0.15 + 0.5 * 0.35)


@pytest.mark.parametrize("bins", [1, 4, 10, 15])
def test_equal_to_scikit_learn(bins):
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(60, 5, generator=generator), torch.arange(60) % 5
    outputs = {"test": Outputs(logits, labels, torch.zeros(60, 1))}
    run = calibration(outputs, bins)
    right = (logits.argmax(dim=1) == labels).numpy()
    sure = SCORES["softmax"].value(outputs["test"]).numpy()
    accuracy, confidence = calibration_curve(right, sure, n_bins=bins, strategy="quantile")
    np.testing.assert_allclose(run.accuracy, accuracy)
    np.testing.assert_allclose(run.confidence, confidence)
    assert run.images.tolist() == [60 // bins] * bins
    assert run.error == pytest.approx(np.abs(accuracy - confidence).mean())


@pytest.mark.parametrize(("images", "bins"), [(83, 15), (7, 15), (16, 15), (1, 15), (31, 2)])
def test_bins_hold_about_as_many(images, bins):
    probabilities = np.linspace(0.55, 0.95, images).tolist()
    run = calibration(sure_of(probabilities, [True] * images), bins)
    assert run.images.sum() == images and len(run.images) == min(images, bins)
    assert run.images.max() - run.images.min() <= 1
    assert run.error == pytest.approx(1 - np.mean(probabilities))


def test_the_order_of_the_images_does_not_matter():
    outputs = splits(classes=3)  # many equal confidences
    order = torch.randperm(83, generator=torch.Generator().manual_seed(0))
    test = outputs["test"]
    mixed = {"test": Outputs(test.logits[order], test.labels[order], test.features)}
    one, other = calibration(outputs), calibration(mixed)
    np.testing.assert_allclose(one.accuracy, other.accuracy)
    assert one.images.tolist() == other.images.tolist() and one.error == pytest.approx(other.error)


def test_what_cannot_be_measured():
    with pytest.raises(UserError, match="no test images"):
        calibration({"test": split(0, 0)})
    with pytest.raises(UserError, match="at least one bin"):
        calibration(splits(), bins=0)
    with pytest.raises(UserError, match="no runs"):
        calibration_figure({})


def test_odd_sets_are_drawn():
    sets = {"usual": splits(), "one image": splits(test=1, unseen=0), "one class": splits(classes=1)}
    runs = {name: calibration(outputs) for name, outputs in sets.items()}
    assert runs["one class"].images.tolist() == [83] and runs["one class"].error == 0
    assert all(np.isfinite([run.accuracy, run.confidence]).all() for run in runs.values())
    figure = calibration_figure(runs)
    as_png(figure)
    assert len(figure.axes[0].lines) == 1 + len(runs)  # the diagonal too
