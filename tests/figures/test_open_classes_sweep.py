"""F-measure beside more and more open classes: by hand, by leaving images out, and what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.open_classes_sweep import FIGURE, open_classes_sweep, open_classes_sweep_figure
from oltr.metrics.fmeasure import f_measure
from oltr.openset import RejectionRule
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import MadeUpRun, as_png, splits

NAMES = [f"open {number % 6}" for number in range(31)]


def f_beside(run, shown):
    """The F-measure of all test images and the open images `shown`, N bool."""
    kept = torch.cat([torch.ones(run.decisions.test_images, dtype=torch.bool), shown])
    return f_measure(run.decisions.predictions[kept], run.decisions.labels[kept])


def test_by_hand():
    test = Outputs(torch.tensor([[9.0, 0], [0, 9]]), torch.tensor([0, 0]), torch.zeros(2, 1))
    unseen = Outputs(torch.tensor([[9.0, 0], [9, 0], [0, 9]]), torch.tensor([-1, -1, -1]), torch.zeros(3, 1))
    run = MadeUpRun({"test": test, "open": unseen}, [5, 5])
    found = open_classes_sweep(run, ["x", "y", "y"], draws=40)
    # TP 1, FP 1, FN 0; then 1 or 2, as x or y comes first; then 3
    assert found.sizes.tolist() == [0, 1, 2]
    assert set(found.f_measure[:, 0]) == {2 / 3} and set(found.f_measure[:, 2]) == {2 / 6}
    assert set(found.f_measure[:, 1]) == {2 / 4, 2 / 5}


@pytest.mark.parametrize("rule", [RejectionRule("softmax", 0.5), RejectionRule("reachability", 1.2)])
def test_each_draw_is_a_growing_set_of_classes(rule):
    run = MadeUpRun(splits(), rule=rule)
    found = open_classes_sweep(run, NAMES, draws=3, seed=5)
    generator = np.random.default_rng(5)
    for draw in range(3):
        order = [f"open {number}" for number in generator.permutation(6)]
        for size, f in zip(found.sizes, found.f_measure[draw], strict=True):
            assert f == pytest.approx(f_beside(run, torch.tensor([name in order[:size] for name in NAMES])))
        assert (np.diff(found.f_measure[draw]) <= 0).all()
    np.testing.assert_allclose(found.mean, found.f_measure.mean(axis=0))
    np.testing.assert_allclose(found.deviation[2], np.std(found.f_measure[:, 2], ddof=1))
    # No class or all of them: each draw is the same.
    assert (found.deviation[0], found.deviation[-1]) == pytest.approx((0, 0), abs=1e-12)
    assert found.threshold == rule.threshold


def test_the_seed_and_the_names_decide():
    run = MadeUpRun(splits())
    first, again, other = (open_classes_sweep(run, NAMES, seed=seed).f_measure for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_sizes():
    many = [str(number) for number in range(300)]
    run = open_classes_sweep(MadeUpRun(splits(unseen=300)), many)
    assert (len(run.sizes), run.sizes[0], run.sizes[-1]) == (41, 0, 300)
    assert open_classes_sweep(MadeUpRun(splits()), NAMES, sizes=[6, 1]).sizes.tolist() == [1, 6]
    for wrong in ([7], [-1], []):
        with pytest.raises(UserError, match="between 0 and 6"):
            open_classes_sweep(MadeUpRun(splits()), NAMES, sizes=wrong)


def test_what_cannot_be_swept():
    with pytest.raises(UserError, match="no open images"):
        open_classes_sweep(MadeUpRun(splits(unseen=0)), [])
    with pytest.raises(UserError, match="31 open images but 1 names"):
        open_classes_sweep(MadeUpRun(splits()), ["a"])
    with pytest.raises(UserError, match="at least one draw"):
        open_classes_sweep(MadeUpRun(splits()), NAMES, draws=0)
    with pytest.raises(UserError, match="no runs"):
        open_classes_sweep_figure({})
    with pytest.raises(UserError, match=r"(?s)not there any more.*They are gone"):
        FIGURE.draw([MadeUpRun(splits())])
    with pytest.raises(UserError, match="no open images"):
        FIGURE.draw([MadeUpRun(splits(unseen=0))])


def test_odd_sets_are_drawn():
    runs = {
        "usual": open_classes_sweep(MadeUpRun(splits()), NAMES),
        "one class": open_classes_sweep(MadeUpRun(splits(classes=1), [5]), ["same"] * 31),
        "one image": open_classes_sweep(MadeUpRun(splits(test=1, unseen=1)), ["same"], draws=1),
        "one size": open_classes_sweep(MadeUpRun(splits()), NAMES, sizes=[6]),
    }
    assert all(np.isfinite([run.mean, run.deviation]).all() for run in runs.values())
    as_png(open_classes_sweep_figure(runs))
    figure = open_classes_sweep_figure({"usual": runs["usual"]})
    assert "20 draws" in figure.axes[0].get_xlabel()


def test_the_picture_tells_the_threshold_and_does_not_stretch_a_slope():
    runs = {name: open_classes_sweep(MadeUpRun(splits(), rule=0.4), NAMES) for name in "ab"}
    figure = open_classes_sweep_figure(runs)
    low, high = figure.axes[0].get_ylim()
    assert high - low >= 40 - 1e-9 and low >= 0 and high <= 100
    assert figure.axes[0].get_title(loc="left") == "at the threshold 0.4"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    runs["b"] = open_classes_sweep(MadeUpRun(splits(), rule=0.6), NAMES)
    figure = open_classes_sweep_figure(runs)
    assert figure.axes[0].get_title(loc="left") == "at the thresholds 0.4 to 0.6"
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["a: threshold 0.4", "b: threshold 0.6"]
