"""Curves over seeds: by hand, against whole evaluations at single thresholds, and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from oltr.errors import UserError
from oltr.figures.open_classes_sweep import open_classes_sweep
from oltr.figures.sweep_curves import Curve, open_classes_curves, sweep_figure, threshold_curves
from oltr.figures.threshold_sweep import threshold_sweep
from oltr.openset import RejectionRule
from tests.figures.few_outputs import MadeUpRun, as_png, split, splits

NAN = np.nan


def curve(values, label="plain", measure="overall", **more):
    rows = np.array(values, dtype=np.float64)
    return Curve(
        label, measure, np.arange(rows.shape[1], dtype=np.float64), tuple(range(len(rows))), rows, **more
    )


def other_run(seed, rule=0.4):
    return MadeUpRun(
        splits() | {"test": split(83, seed), "open": split(31, seed + 1, unseen=True)}, rule=rule
    )


def test_mean_and_deviation_over_the_seeds_there_are():
    made = curve([[0.2, 0.5, NAN, NAN], [0.4, NAN, NAN, 0.1], [0.9, 0.7, NAN, NAN]])
    np.testing.assert_allclose(made.mean, [0.5, 0.6, NAN, 0.1])
    np.testing.assert_allclose(made.deviation, [0.13**0.5, 0.02**0.5, NAN, NAN])
    assert made.counts.tolist() == [3, 2, 0, 1]


def test_each_threshold_is_a_whole_evaluation():
    seeds = {0: MadeUpRun(splits()), 3: other_run(7)}
    steps = np.linspace(0, 1, 11)
    made = threshold_curves("oltr", {seed: threshold_sweep(run, steps) for seed, run in seeds.items()})
    assert [found.measure for found in made] == ["many", "medium", "few", "overall", "f_measure"]
    for found in made:
        assert found.label == "oltr" and found.seeds == (0, 3) and found.at.tolist() == steps.tolist()
        for place, threshold in enumerate(steps):
            rule = RejectionRule("softmax", float(threshold))
            slow = [run.under(rule).measure()["open"][found.measure] for run in seeds.values()]
            assert found.values[:, place].tolist() == pytest.approx(slow)
            assert found.mean[place] == pytest.approx(sum(slow) / 2)


def test_open_classes_are_the_mean_of_the_draws():
    names = [f"open {number % 6}" for number in range(31)]
    sweeps = {seed: open_classes_sweep(other_run(seed, 0.1), names) for seed in (0, 1)}
    (made,) = open_classes_curves("plain", sweeps)
    np.testing.assert_allclose(made.values[1], sweeps[1].f_measure.mean(axis=0))
    halved = (sweeps[0].deviation + sweeps[1].deviation) / 2
    np.testing.assert_allclose(made.draw_deviation, halved)
    assert made.thresholds == (0.1, 0.1)
    assert made.values[1, -1] == pytest.approx(other_run(1, 0.1).measure().open.f_measure)


def test_a_colour_for_each_system_and_a_line_for_each_measure():
    made = [
        curve([[0.1, 0.9], [0.3, 0.5]], label, m) for label in ("a", "b") for m in ("overall", "f_measure")
    ]
    figure = sweep_figure("threshold", [*made, curve([[1, 1]], measure="many")])
    (axes,) = figure.axes
    lines = [(line.get_color(), line.get_linestyle()) for line in axes.lines]
    assert len(set(lines)) == 4 and len({colour for colour, _ in lines}) == 2
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [20, 70])
    assert len(axes.collections) == 4 and "2 seeds" in axes.get_xlabel()
    assert axes.get_ylabel() == "open-set accuracy and F-measure (%)"
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["a", "b", "accuracy, overall", "F-measure"]
    as_png(figure)


@pytest.mark.parametrize("points", [4, 40])
def test_no_two_of_many_systems_look_alike(points):
    labels = [f"$_{number}$" for number in range(20)]  # no formulas
    made = [
        curve([[0.5] * points], label, measure) for label in labels for measure in ("overall", "f_measure")
    ]
    figure = sweep_figure("threshold", made)
    lines, legend = figure.axes[0].lines, figure.legends[0].get_lines()[: len(labels)]
    looks = [(line.get_color(), line.get_marker()) for line in lines]
    assert len(set(looks)) == 20 and looks[::2] == looks[1::2]
    assert [(line.get_color(), line.get_marker()) for line in legend] == looks[::2]
    as_png(figure)


def test_the_band_of_a_single_seed_is_that_of_its_draws():
    made = curve([[0.5, 0.5]], measure="f_measure", draw_deviation=np.array([0.0, 0.1]))
    (axes,) = sweep_figure("open", [made]).axes
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(40) and heights.max() == pytest.approx(60)
    assert "random choices" in axes.get_xlabel() and axes.get_ylabel() == "F-measure (%)"


def test_the_sweep_over_open_classes_tells_its_threshold_and_does_not_stretch_a_slope():
    rows = [
        curve([[0.50, 0.48]], name, "f_measure", thresholds=(at,)) for name, at in (("a", 0.3), ("b", 0.4))
    ]
    (axes,) = sweep_figure("open", rows[:1]).axes
    assert axes.get_title(loc="left") == "at the threshold 0.3"
    low, high = axes.get_ylim()
    assert high - low == pytest.approx(40) and low < 48 < 50 < high
    assert sweep_figure("open", rows).axes[0].get_title(loc="left") == "at the thresholds 0.3 to 0.4"
    assert sweep_figure("threshold", [curve([[0.1, 0.9]])]).axes[0].get_title(loc="left") == ""


def test_odd_curves_are_drawn():
    as_png(sweep_figure("longtail", [curve([[NAN, 0.5], [NAN, NAN]]), curve([[0.2]], "alone")]))
    with pytest.raises(UserError, match="no runs"):
        sweep_figure("longtail", [])
