"""Risk against coverage: by hand, by a loop over thresholds, and what cannot be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oltr.errors import UserError
from oltr.figures.risk_coverage import FIGURE, risk_coverage, risk_coverage_figure
from oltr.figures.values import right_answers, unknown_values
from oltr.openset import SCORES, RejectionRule
from tests.figures.few_outputs import MadeUpRun, as_png, splits


def test_by_hand():
    unknown = np.array([-4.0, -3, -2, -2])  # right, wrong, then right and wrong at once
    curve = risk_coverage(unknown, np.array([True, False, True, False]))
    np.testing.assert_allclose(curve.coverage, [1 / 4, 1 / 2, 1])
    np.testing.assert_allclose(curve.risk, [0, 1 / 2, 1 / 2])
    assert curve.area == pytest.approx(0.25 * 0 + 0.25 * 0.5 + 0.5 * 0.5)


@pytest.mark.parametrize("score", ["softmax", "reachability"])
def test_equal_to_a_loop_over_thresholds(score):
    run = MadeUpRun(splits(), rule=RejectionRule(score, 0.5))
    values, right = run.scored("test").values, right_answers(run)
    curve = risk_coverage(unknown_values(run, "test"), right)
    area = before = 0.0
    thresholds = sorted(set(values.tolist()), reverse=SCORES[score].higher_is_known)
    assert len(curve.risk) == len(thresholds)
    for place, threshold in enumerate(thresholds):
        accepted = ~RejectionRule(score, threshold).rejects(values).numpy()
        assert curve.coverage[place] == pytest.approx(accepted.mean())
        assert curve.risk[place] == pytest.approx((~right)[accepted].mean())
        area += (accepted.mean() - before) * (~right)[accepted].mean()
        before = accepted.mean()
    assert curve.area == pytest.approx(area)


def test_without_equal_scores_the_area_is_the_mean_risk():
    random = np.random.default_rng(0)
    curve = risk_coverage(random.random(83), random.random(83) < 0.6)
    assert len(curve.risk) == 83 and curve.area == pytest.approx(curve.risk.mean())


def test_what_cannot_be_measured():
    with pytest.raises(UserError, match="no test images"):
        FIGURE.draw([MadeUpRun(splits(test=0))])
    astray = splits()
    astray["test"].logits[0, 0] = math.inf
    with pytest.raises(UserError, match="NaN or infinite"):
        FIGURE.draw([MadeUpRun(astray, rule=RejectionRule("reachability", 0.5))])
    with pytest.raises(UserError, match="no runs"):
        risk_coverage_figure({})


def test_odd_sets_are_drawn():
    sets = {"usual": splits(), "one image": splits(test=1, unseen=0)}
    runs = [MadeUpRun(outputs, name=name) for name, outputs in sets.items()]
    figure = FIGURE.draw([*runs, MadeUpRun(splits(classes=1), [7], name="one class")])
    as_png(figure)
    assert len(figure.axes[0].lines) == 3 and "area" in figure.legends[0].get_texts()[0].get_text()
    assert all(np.isfinite(line.get_xydata()).all() for line in figure.axes[0].lines)


def test_many_runs_look_different():
    curve = risk_coverage(np.arange(5.0), np.array([True, True, False, True, False]))
    lines = risk_coverage_figure({str(number): curve for number in range(12)}).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12
