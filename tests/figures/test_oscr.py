"""The OSCR curve: by hand, by a loop over thresholds, and its area beside that of the report."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import auc, roc_curve

from oltr.errors import UserError
from oltr.figures.oscr import FIGURE, oscr_curve, oscr_figure
from oltr.figures.values import right_answers, unknown_values
from oltr.openset import SCORES, RejectionRule
from tests.figures.few_outputs import MadeUpRun, as_png, splits


def points(curve):
    return list(zip(curve.false_positive_rate.tolist(), curve.correct_rate.tolist(), strict=True))


def test_by_hand():
    curve = oscr_curve(np.array([1.0, 2, 3]), np.array([3.0, 4]), np.array([True, False, True]))
    assert points(curve) == [(0, 0), (0, 1 / 3), (0, 1 / 3), (0.5, 2 / 3), (1, 2 / 3)]
    assert curve.area == pytest.approx(0.5 * 0.5 + 0.5 * 2 / 3)


@pytest.mark.parametrize("score", ["softmax", "reachability", "max-logit"])
def test_equal_to_a_loop_and_to_the_report(score):
    run = MadeUpRun(splits(), rule=RejectionRule(score, 0.5))
    curve = oscr_curve(unknown_values(run, "test"), unknown_values(run, "open"), right_answers(run))
    known, unseen = (run.scored(split).values for split in ("test", "open"))
    right = run.outputs["test"].logits.argmax(dim=1) == run.outputs["test"].labels
    slow = [(0.0, 0.0)]
    for threshold in sorted({*known.tolist(), *unseen.tolist()}, reverse=SCORES[score].higher_is_known):
        rule = RejectionRule(score, threshold)
        accepted, named = ~rule.rejects(unseen), right & ~rule.rejects(known)
        slow.append((float(accepted.double().mean()), float(named.double().mean())))
    assert points(curve) == [pytest.approx(point) for point in slow]
    assert curve.area == pytest.approx(auc(curve.false_positive_rate, curve.correct_rate))
    assert curve.area == pytest.approx(run.measure().open.oscr)


def test_a_network_that_is_always_right_has_the_roc_curve():
    random = np.random.default_rng(0)
    known, unseen = random.normal(0, 1, 83), random.normal(1, 1, 31)
    rates = roc_curve(np.arange(114) < 83, -np.append(known, unseen), drop_intermediate=False)
    curve = oscr_curve(known, unseen, np.ones(83, dtype=bool))
    np.testing.assert_allclose([curve.false_positive_rate, curve.correct_rate], rates[:2])


def test_what_cannot_be_drawn():
    with pytest.raises(UserError, match="no open images"):
        FIGURE.draw([MadeUpRun(splits(unseen=0))])
    astray = splits()
    astray["open"].logits[3] = np.nan
    with pytest.raises(UserError, match="NaN or infinite for 1 open images"):
        FIGURE.draw([MadeUpRun(astray)])
    with pytest.raises(UserError, match="no runs"):
        oscr_figure({})


def test_odd_sets_are_drawn():
    sets = {"usual": splits(), "one image": splits(test=1, unseen=1)}
    runs = [MadeUpRun(outputs, name=name) for name, outputs in sets.items()]
    figure = FIGURE.draw([*runs, MadeUpRun(splits(classes=1), [7], name="one class")])
    as_png(figure)
    assert all(np.isfinite(line.get_xydata()).all() for line in figure.axes[0].lines)
    said = [text.get_text().split(":")[0] for text in figure.legends[0].get_texts()]
    assert said == ["usual", "one image", "one class"]
