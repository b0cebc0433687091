"""The OSCR curve: by hand, by a loop over thresholds, and its area beside that of the report."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import auc, roc_curve

from oltr.errors import UserError
from oltr.figures.oscr import oscr_curve, oscr_figure
from oltr.metrics.detection import oscr
from oltr.openset import SCORES
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import as_png, splits


def points(run):
    return list(zip(run.false_positive_rate.tolist(), run.correct_rate.tolist(), strict=True))


def test_by_hand():
    known = Outputs(
        torch.tensor([[1.0, 0], [0, 1], [1, 0]]),
        torch.tensor([0, 0, 0]),
        torch.zeros(3, 1),
        reachability=torch.tensor([1.0, 2, 3]),
    )
    unseen = torch.tensor([3.0, 4])
    unseen = Outputs(torch.zeros(2, 2), torch.tensor([-1, -1]), torch.zeros(2, 1), reachability=unseen)
    run = oscr_curve({"test": known, "open": unseen}, "reachability")
    assert points(run) == [(0, 0), (0, 1 / 3), (0, 1 / 3), (0.5, 2 / 3), (1, 2 / 3)]
    assert run.area == pytest.approx(0.5 * 0.5 + 0.5 * 2 / 3)


@pytest.mark.parametrize("score", ["softmax", "reachability", "max-logit"])
def test_equal_to_a_loop_and_to_the_report(score):
    outputs = splits()
    run, chosen = oscr_curve(outputs, score), SCORES[score]
    known, unseen = chosen.value(outputs["test"]), chosen.value(outputs["open"])
    right = outputs["test"].logits.argmax(dim=1) == outputs["test"].labels
    slow = [(0.0, 0.0)]
    for threshold in sorted({*known.tolist(), *unseen.tolist()}, reverse=chosen.higher_is_known):
        accepted = ~chosen.is_unknown(unseen, threshold)
        named = right & ~chosen.is_unknown(known, threshold)
        slow.append((float(accepted.double().mean()), float(named.double().mean())))
    assert points(run) == [pytest.approx(point) for point in slow]
    assert run.area == pytest.approx(auc(run.false_positive_rate, run.correct_rate))
    sides = chosen.unknown_score(outputs["test"]), chosen.unknown_score(outputs["open"])
    assert run.area == pytest.approx(oscr(*sides, correct=right))


def test_a_network_that_is_always_right_has_the_roc_curve():
    outputs = splits(classes=1)
    values = torch.cat([outputs["test"].reachability, outputs["open"].reachability])
    known = np.arange(len(values)) < 83
    rates = roc_curve(known, -values, drop_intermediate=False)
    run = oscr_curve(outputs, "reachability")
    np.testing.assert_allclose([run.false_positive_rate, run.correct_rate], rates[:2])


def test_what_cannot_be_drawn():
    with pytest.raises(UserError, match="no open images"):
        oscr_curve(splits(unseen=0))
    with pytest.raises(UserError, match="no test images"):
        oscr_curve({"open": splits()["open"]})
    with pytest.raises(UserError, match="no runs"):
        oscr_figure({})


def test_odd_sets_are_drawn():
    sets = {"usual": splits(), "one image": splits(test=1, unseen=1), "one class": splits(classes=1)}
    figure = oscr_figure({name: oscr_curve(outputs) for name, outputs in sets.items()})
    as_png(figure)
    assert all(np.isfinite(line.get_xydata()).all() for line in figure.axes[0].lines)
    assert [text.get_text().split(":")[0] for text in figure.legends[0].get_texts()] == list(sets)
