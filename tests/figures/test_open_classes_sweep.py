"""F-measure beside more and more open classes: by hand, by leaving images out, and what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.open_classes_sweep import open_classes_sweep, open_classes_sweep_figure
from oltr.metrics.fmeasure import f_measure
from oltr.openset import SCORES
from oltr.openset.threshold import choose_threshold
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import as_png, splits

NAMES = [f"open {number % 6}" for number in range(31)]


def f_beside(outputs, shown, threshold):
    """The F-measure of all test images and the open images `shown`."""
    predictions, labels = [], []
    for part, kept in ((outputs["test"], slice(None)), (outputs["open"], shown)):
        unknown = SCORES["softmax"].value(part) < threshold
        predictions.append(part.logits.argmax(dim=1).masked_fill(unknown, -1)[kept])
        labels.append(part.labels[kept])
    return f_measure(torch.cat(predictions), torch.cat(labels))


def test_by_hand():
    test = Outputs(torch.tensor([[9.0, 0], [0, 9]]), torch.tensor([0, 0]), torch.zeros(2, 1))
    unseen = Outputs(torch.tensor([[9.0, 0], [9, 0], [0, 9]]), torch.tensor([-1, -1, -1]), torch.zeros(3, 1))
    run = open_classes_sweep({"test": test, "open": unseen}, ["x", "y", "y"], draws=40)
    # TP 1, FP 1, FN 0; then 1 or 2, as x or y comes first; then 3
    assert run.sizes.tolist() == [0, 1, 2]
    assert set(run.f_measure[:, 0]) == {2 / 3} and set(run.f_measure[:, 2]) == {2 / 6}
    assert set(run.f_measure[:, 1]) == {2 / 4, 2 / 5}


def test_each_draw_is_a_growing_set_of_classes():
    outputs = splits()
    threshold = 0.5
    run = open_classes_sweep(outputs, NAMES, threshold=threshold, draws=3, seed=5)
    generator = np.random.default_rng(5)
    for draw in range(3):
        order = [f"open {number}" for number in generator.permutation(6)]
        for size, found in zip(run.sizes, run.f_measure[draw], strict=True):
            shown = torch.tensor([name in order[:size] for name in NAMES])
            assert found == pytest.approx(f_beside(outputs, shown, threshold))
        assert (np.diff(run.f_measure[draw]) <= 0).all()
    np.testing.assert_allclose(run.mean, run.f_measure.mean(axis=0))
    np.testing.assert_allclose(run.deviation[2], np.std(run.f_measure[:, 2], ddof=1))
    assert run.deviation[0] == run.deviation[-1] == 0  # no class or all of them: each draw is the same


def test_the_seed_and_the_names_decide():
    first, again, other = (open_classes_sweep(splits(), NAMES, seed=seed).f_measure for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_the_threshold_is_chosen_as_in_a_report():
    outputs = splits()
    assert open_classes_sweep(outputs, NAMES).threshold == 0.1
    chosen = choose_threshold(SCORES["softmax"], outputs["val"], 0.2)
    assert open_classes_sweep(outputs, NAMES, unknown_rate=0.2).threshold == chosen
    with pytest.raises(UserError, match="no default threshold"):
        open_classes_sweep(outputs, NAMES, "reachability")


def test_sizes():
    many = [str(number) for number in range(300)]
    run = open_classes_sweep(splits(unseen=300), many)
    assert (len(run.sizes), run.sizes[0], run.sizes[-1]) == (41, 0, 300)
    assert open_classes_sweep(splits(), NAMES, sizes=[6, 1]).sizes.tolist() == [1, 6]
    for wrong in ([7], [-1], []):
        with pytest.raises(UserError, match="between 0 and 6"):
            open_classes_sweep(splits(), NAMES, sizes=wrong)


def test_what_cannot_be_swept():
    with pytest.raises(UserError, match="no open images"):
        open_classes_sweep(splits(unseen=0), [])
    with pytest.raises(UserError, match="31 open images but 1 names"):
        open_classes_sweep(splits(), ["a"])
    with pytest.raises(UserError, match="at least one draw"):
        open_classes_sweep(splits(), NAMES, draws=0)
    with pytest.raises(UserError, match="no runs"):
        open_classes_sweep_figure({})


def test_odd_sets_are_drawn():
    runs = {
        "usual": open_classes_sweep(splits(), NAMES),
        "one class": open_classes_sweep(splits(classes=1), ["same"] * 31),
        "one image": open_classes_sweep(splits(test=1, unseen=1), ["same"], draws=1),
        "one size": open_classes_sweep(splits(), NAMES, sizes=[6]),
    }
    assert all(np.isfinite([run.mean, run.deviation]).all() for run in runs.values())
    as_png(open_classes_sweep_figure(runs))
    figure = open_classes_sweep_figure({"usual": runs["usual"]})
    assert "20 draws" in figure.axes[0].get_xlabel()


def test_the_picture_tells_the_threshold_and_does_not_stretch_a_slope():
    runs = {name: open_classes_sweep(splits(), NAMES, threshold=0.4) for name in "ab"}
    figure = open_classes_sweep_figure(runs)
    low, high = figure.axes[0].get_ylim()
    assert high - low >= 40 - 1e-9 and low >= 0 and high <= 100
    assert figure.axes[0].get_title(loc="left") == "at the threshold 0.4"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    runs["b"] = open_classes_sweep(splits(), NAMES, threshold=0.6)
    figure = open_classes_sweep_figure(runs)
    assert figure.axes[0].get_title(loc="left") == "at the thresholds 0.4 to 0.6"
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["a: threshold 0.4", "b: threshold 0.6"]
