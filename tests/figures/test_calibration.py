"""Reliability in bins of equal mass: by hand, beside scikit-learn, and with equal confidences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve

from oltr.errors import UserError
from oltr.figures.calibration import FIGURE, calibration, calibration_figure
from oltr.figures.values import right_answers
from tests.figures.few_outputs import MadeUpRun, as_png, splits


def test_by_hand():
    run = calibration(np.array([0.9, 0.6, 0.8, 0.7]), np.array([True, False, False, True]), bins=2)
    assert run.images.tolist() == [2, 2]
    np.testing.assert_allclose(run.confidence, [0.65, 0.85])
    np.testing.assert_allclose(run.accuracy, [0.5, 0.5])
    assert run.error == pytest.approx(0.5 * 0.15 + 0.5 * 0.35)


@pytest.mark.parametrize("bins", [1, 4, 10, 15])
def test_equal_to_scikit_learn(bins):
    logits = torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
    sure = logits.double().softmax(dim=1).amax(dim=1).numpy()
    right = (logits.argmax(dim=1) == torch.arange(60) % 5).numpy()
    run = calibration(sure, right, bins)
    accuracy, confidence = calibration_curve(right, sure, n_bins=bins, strategy="quantile")
    np.testing.assert_allclose(run.accuracy, accuracy)
    np.testing.assert_allclose(run.confidence, confidence)
    assert run.images.tolist() == [60 // bins] * bins
    assert run.error == pytest.approx(np.abs(accuracy - confidence).mean())


@pytest.mark.parametrize(("images", "bins"), [(83, 15), (7, 15), (16, 15), (1, 15), (31, 2)])
def test_bins_hold_about_as_many(images, bins):
    probabilities = np.linspace(0.55, 0.95, images)
    run = calibration(probabilities, np.ones(images, dtype=bool), bins)
    assert run.images.sum() == images and len(run.images) == min(images, bins)
    assert run.images.max() - run.images.min() <= 1
    assert run.error == pytest.approx(1 - np.mean(probabilities))


def test_the_order_of_the_images_does_not_matter():
    run = MadeUpRun(splits())  # many equal confidences
    sure, right = run.scored("test").values.numpy(), right_answers(run)
    order = np.random.default_rng(0).permutation(83)
    one, other = calibration(sure, right), calibration(sure[order], right[order])
    np.testing.assert_allclose(one.accuracy, other.accuracy)
    assert one.images.tolist() == other.images.tolist() and one.error == pytest.approx(other.error)


def test_what_cannot_be_measured():
    with pytest.raises(UserError, match="no test images"):
        FIGURE.draw([MadeUpRun(splits(test=0))])
    with pytest.raises(UserError, match="at least one bin"):
        calibration(np.ones(3), np.ones(3, dtype=bool), bins=0)
    with pytest.raises(UserError, match="no runs"):
        calibration_figure({})


def test_odd_sets_are_drawn():
    alone = calibration(np.ones(83), np.ones(83, dtype=bool))
    assert alone.images.tolist() == [83] and alone.error == 0
    sets = {"usual": splits(), "one image": splits(test=1, unseen=0)}
    runs = [MadeUpRun(outputs, name=name) for name, outputs in sets.items()]
    figure = FIGURE.draw([*runs, MadeUpRun(splits(classes=1), [7], name="one class")])
    as_png(figure)
    assert len(figure.axes[0].lines) == 1 + 3  # the diagonal too
    assert all(np.isfinite(line.get_xydata()).all() for line in figure.axes[0].lines[1:])
