"""F1 gain of each class, against scikit-learn."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from oltr.errors import UserError
from oltr.figures.class_gain import FIGURE, ClassGain, class_gain, class_gain_figure, gain_over
from tests.figures.few_outputs import MadeUpRun
from tests.helpers.separable import separable, strangers

COUNTS = [5, 300, 50, 40, 9, 500]
ORDER = [5, 1, 2, 3, 4, 0]


def drawn(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue().startswith(b"\x89PNG")


@pytest.fixture(scope="module", params=[True, False], ids=["with open", "without"])
def both(request):
    """Two runs on the same images."""
    runs = []
    for seed, height in ((0, 3.0), (1, 1.5)):
        splits = {"test": separable([20] * 6, seed=seed, height=height)}
        if request.param:
            splits["open"] = strangers(50, 6, seed=seed + 2)
        runs.append(MadeUpRun(splits, COUNTS, 0.5, name=f"run {seed}"))
    return runs


def test_equals_scikit_learn(both):
    gain, with_open = gain_over(*both), both[0].unseen is not None
    labels = range(-1 if with_open else 0, 6)
    made = [run.decisions for run in both]
    run, plain = (f1_score(d.labels, d.predictions, labels=labels, average=None) for d in made)
    slow = run - plain
    if with_open:
        assert gain.unknown == pytest.approx(slow[0])
        slow = slow[1:]
    else:
        assert gain.unknown is None
    assert gain.classes.tolist() == ORDER
    assert gain.groups.tolist() == ["many", "many", "medium", "medium", "few", "few"]
    np.testing.assert_allclose(gain.gains, slow[ORDER], rtol=1e-12)
    assert gain.means["many"] == pytest.approx((slow[5] + slow[1]) / 2)
    assert gain.means["few"] == pytest.approx((slow[4] + slow[0]) / 2)
    assert gain.means["overall"] == pytest.approx(slow.mean())


def test_a_class_without_test_images_has_no_gain():
    counts, groups = np.array([200, 5]), np.array(["many", "few"])
    gain = class_gain(torch.tensor([1]), torch.tensor([0]), torch.tensor([1]), counts, groups)
    assert np.isnan(gain.gains[0]) and gain.gains[1] == 1.0
    assert gain.means == {"many": None, "medium": None, "few": 1.0, "overall": 1.0}
    assert drawn(class_gain_figure({"run": gain}, "plain"))


def test_other_images_are_refused(both):
    fewer = MadeUpRun({"test": separable([19] * 6, seed=0)}, COUNTS, name="fewer")
    with pytest.raises(UserError, match="same images"):
        gain_over(both[0], fewer)


def test_the_figure_of_runs_says_over_whom(both):
    assert "run 1 over run 0" in FIGURE.draw(both).axes[0].get_title(loc="left")
    with pytest.raises(UserError, match="one run only"):
        FIGURE.draw(both[:1])


def made_up(classes, unknown=0.1, missing=0):
    gains = np.random.default_rng(0).normal(0, 0.1, classes)
    gains[:missing] = np.nan
    groups = np.array(["many", "few"]).repeat([classes // 2, classes - classes // 2])
    means = {"many": -0.05, "medium": None, "few": 0.123, "overall": 0.1}
    return ClassGain(np.arange(classes), groups, gains, means, unknown)


@pytest.mark.parametrize("classes", [6, 200])
def test_the_figure_shows_the_gains_in_points(classes):
    gain = made_up(classes)
    axes = class_gain_figure({"ours": gain}, "plain").axes[0]
    if classes == 6:
        heights = [bar.get_height() for bar in axes.patches]
    else:
        areas = axes.patches[:2]
        heights = [*np.concatenate([area.get_data().values for area in areas]), axes.patches[2].get_height()]
    np.testing.assert_allclose(heights, [*100 * gain.gains, 10.0])
    title = axes.get_title(loc="left")
    assert title == "ours over plain\nmean gain: many −5.0, few +12.3, overall +10.0, open +10.0"
    assert "percentage points" in axes.get_ylabel() and "class" in axes.get_xlabel()


@pytest.mark.parametrize(
    "runs", [[made_up(1, None)], [made_up(1000, None, 7)], [made_up(6)] * 3, [made_up(6), made_up(6, None)]]
)
def test_odd_sets_are_drawn(runs):
    figure = class_gain_figure({f"run {number}": run for number, run in enumerate(runs)}, "plain")
    assert len(figure.axes) == len(runs) and drawn(figure)
    for axes in figure.axes:
        assert axes.get_xlim()[1] >= max(run.unknown is not None and len(run.gains) + 1.3 for run in runs)


def test_nothing_to_draw():
    for runs in ({}, {"run": made_up(3, None, 3)}):
        with pytest.raises(UserError, match="No class has test images"):
            class_gain_figure(runs, "plain")
