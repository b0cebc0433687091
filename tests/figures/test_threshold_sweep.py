"""The sweep over thresholds equals accuracy and F-measure computed anew at each of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.threshold_sweep import FIGURE, MEASURES, threshold_sweep, threshold_sweep_figure
from oltr.openset import RejectionRule
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import MadeUpRun, as_png, splits


def test_by_hand():
    test = Outputs(
        torch.tensor([[1.0, 0], [1, 0], [0, 1]]),
        torch.tensor([0, 0, 1]),
        torch.zeros(3, 1),
        reachability=torch.tensor([1.0, 3.0, 2.0]),
    )
    unseen = Outputs(
        torch.zeros(1, 2), torch.tensor([-1]), torch.zeros(1, 1), reachability=torch.tensor([2.0])
    )
    run = MadeUpRun({"test": test, "open": unseen}, [200, 3], RejectionRule("reachability", 1.0))
    found = threshold_sweep(run, [3, 0, 1, 2, 1.5])
    assert found.thresholds.tolist() == [0, 1, 1.5, 2, 3]
    assert found.measures["many"].tolist() == [0, 0.5, 0.5, 0.5, 1]
    assert found.measures["few"].tolist() == [0, 0, 0, 1, 1]
    assert found.measures["overall"].tolist() == [0, 0.25, 0.25, 0.75, 1]
    # TP 0, 1, 1, 2, 3 of 3; the open image has a name from 2 on
    np.testing.assert_allclose(found.measures["f_measure"], [0, 2 / 4, 2 / 4, 4 / 6, 6 / 7])
    assert "medium" not in found.measures and found.threshold == 1.0


@pytest.mark.parametrize("score", ["softmax", "reachability", "max-logit"])
def test_each_threshold_equals_the_report(score):
    run = MadeUpRun(splits())
    values = run.scored("test", score).values
    thresholds = [
        *np.linspace(values.min() - 0.1, values.max() + 0.1, 23),
        *values[:10].tolist(),
    ]  # on images too
    found = threshold_sweep(run, thresholds, score)
    for place, threshold in enumerate(found.thresholds):
        report = run.under(RejectionRule(score, float(threshold))).measure()
        for measure in MEASURES:
            assert found.measures[measure][place] == pytest.approx(report["open"][measure], abs=1e-12)


def test_by_default_the_thresholds_span_the_values():
    run = MadeUpRun(splits())
    found = threshold_sweep(run)
    assert len(found.thresholds) == 201
    every = torch.cat([run.scored(split).values for split in ("test", "open")])
    assert (found.thresholds[0], found.thresholds[-1]) == (float(every.min()), float(every.max()))


def test_what_cannot_be_swept():
    with pytest.raises(UserError, match="no open images"):
        threshold_sweep(MadeUpRun(splits(unseen=0)))
    for wrong in ([0.1, float("nan")], []):
        with pytest.raises(UserError, match="finite"):
            threshold_sweep(MadeUpRun(splits()), wrong)
    with pytest.raises(UserError, match="no runs"):
        threshold_sweep_figure({})
    runs = [MadeUpRun(splits(), rule=RejectionRule(score, 0.4)) for score in ("softmax", "reachability")]
    runs[1].name = "other"
    with pytest.raises(UserError, match="different scores"):
        FIGURE.draw(runs)


def test_one_run_on_one_pair_of_axes_several_in_panels():
    run = threshold_sweep(MadeUpRun(splits()), score="max-logit")
    (axes,) = threshold_sweep_figure({"oltr": run}).axes
    assert [line.get_label() for line in axes.lines] == list(MEASURES.values())
    panels = threshold_sweep_figure({"plain": run, "oltr": run}).axes
    assert [axes.get_title(loc="left") for axes in panels if axes.axison] == list(MEASURES.values())
    np.testing.assert_allclose(panels[4].lines[0].get_ydata(), 100 * run.measures["f_measure"])


def dashed(axes):
    return [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2]


def test_the_threshold_of_a_run_is_within_the_sweep_and_marked():
    run = MadeUpRun(splits(), rule=0.02)  # below each value of four classes
    found = threshold_sweep(run)
    assert found.thresholds[0] == 0.02 and len(found.thresholds) == 201
    figure = FIGURE.draw([run])
    assert dashed(figure.axes[0]) == [0.02]
    assert figure.legends[0].get_texts()[-1].get_text() == "threshold 0.02, used by the run"
    as_png(figure)
    assert threshold_sweep(run, [0.5]).thresholds.tolist() == [0.5]
    assert threshold_sweep(run, score="max-logit").threshold is None  # the rule has another score


def test_several_runs_mark_each_its_own_or_one_for_all():
    runs = {str(at): threshold_sweep(MadeUpRun(splits(), rule=at)) for at in (0.2, 0.7)}
    figure = threshold_sweep_figure(runs)
    for axes in figure.axes[:5]:
        assert dashed(axes) == [0.2, 0.7]
        curves = [line.get_color() for line in axes.lines if len(line.get_xdata()) > 2]
        assert curves == [line.get_color() for line in axes.lines if len(line.get_xdata()) == 2]
    assert figure.legends[0].get_texts()[-1].get_text() == "thresholds 0.2 to 0.7, each in its colour"
    as_png(figure)
    figure = threshold_sweep_figure({"a": runs["0.2"], "b": runs["0.2"]})
    assert [dashed(axes) for axes in figure.axes[:5]] == [[0.2]] * 5
    assert figure.legends[0].get_texts()[-1].get_text() == "threshold 0.2, used by the runs"


@pytest.mark.parametrize("more", [{}, {"test": 1, "unseen": 1}, {"test": 2, "unseen": 3}])
def test_odd_sets_are_drawn(more):
    run = threshold_sweep(MadeUpRun(splits(**more)))
    assert all(np.isfinite(values).all() for values in run.measures.values())
    as_png(threshold_sweep_figure({"one": run}))
    alone = threshold_sweep(MadeUpRun(splits(classes=1, **more), [7]))  # each value is 1
    as_png(threshold_sweep_figure({"one": run, "other": alone}))
    as_png(threshold_sweep_figure({"one": alone, "other": alone}))
