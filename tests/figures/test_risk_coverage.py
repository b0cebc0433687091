"""Risk against coverage: by hand, by a loop over thresholds, and what cannot be drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.risk_coverage import risk_coverage, risk_coverage_figure
from oltr.figures.values import right_answers
from oltr.openset import SCORES
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import as_png, split, splits


def test_by_hand():
    logits = torch.tensor([[4.0, 0], [3, 0], [0, 2], [0, 2]])  # right, wrong, then right and wrong at once
    run = risk_coverage({"test": Outputs(logits, torch.tensor([0, 1, 1, 0]), torch.zeros(4, 1))})
    np.testing.assert_allclose(run.coverage, [1 / 4, 1 / 2, 1])
    np.testing.assert_allclose(run.risk, [0, 1 / 2, 1 / 2])
    assert run.area == pytest.approx(0.25 * 0 + 0.25 * 0.5 + 0.5 * 0.5)


@pytest.mark.parametrize("score", ["softmax", "reachability"])
def test_equal_to_a_loop_over_thresholds(score):
    outputs = splits()
    run = risk_coverage(outputs, score)
    values, right = SCORES[score].value(outputs["test"]), right_answers(outputs)
    area = before = 0.0
    thresholds = sorted(set(values.tolist()), reverse=SCORES[score].higher_is_known)
    assert len(run.risk) == len(thresholds)
    for place, threshold in enumerate(thresholds):
        accepted = ~SCORES[score].is_unknown(values, threshold).numpy()
        assert run.coverage[place] == pytest.approx(accepted.mean())
        assert run.risk[place] == pytest.approx((~right)[accepted].mean())
        area += (accepted.mean() - before) * (~right)[accepted].mean()
        before = accepted.mean()
    assert run.area == pytest.approx(area)


def test_without_equal_scores_the_area_is_the_mean_risk():
    run = risk_coverage(splits(), "reachability")
    assert len(run.risk) == 83 and run.area == pytest.approx(run.risk.mean())


def test_what_cannot_be_measured():
    with pytest.raises(UserError, match="no test images"):
        risk_coverage({"test": split(0, 0)})
    with pytest.raises(UserError, match="no known class"):
        risk_coverage({"test": split(3, 0, unseen=True)})
    astray = splits()
    astray["test"].logits[0, 0] = math.inf
    with pytest.raises(UserError, match="NaN or infinite"):
        risk_coverage(astray, "reachability")
    with pytest.raises(UserError, match="no runs"):
        risk_coverage_figure({})


def test_odd_sets_are_drawn():
    sets = {"usual": splits(), "one image": splits(test=1, unseen=0), "one class": splits(classes=1)}
    figure = risk_coverage_figure({name: risk_coverage(outputs) for name, outputs in sets.items()})
    as_png(figure)
    assert len(figure.axes[0].lines) == 3 and "area" in figure.legends[0].get_texts()[0].get_text()
    assert all(np.isfinite(line.get_xydata()).all() for line in figure.axes[0].lines)


def test_many_runs_look_different():
    run = risk_coverage(splits())
    lines = risk_coverage_figure({str(number): run for number in range(12)}).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12
