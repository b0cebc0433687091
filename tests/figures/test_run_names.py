"""Names of runs: short enough for a figure, never two alike; legends that leave the figure its size."""

from __future__ import annotations

import pytest

from oltr.figures import calibration, open_classes_sweep, oscr, risk_coverage, threshold_sweep
from oltr.figures.run_names import legend_below, short_names
from oltr.figures.style import keep_slopes_honest, run_axes
from oltr.figures.values import threshold_words
from tests.figures.few_outputs import MadeUpRun, as_png, splits

START = "camera-traps-2026-resnet50-pretrained-lr0.05-"


def shown(*names, most=40):
    """The short names, after a look at whether each still stands for its run."""
    found = short_names({name: place for place, name in enumerate(names)}, most)
    assert list(found.values()) == list(range(len(names)))
    assert all(len(name) <= most for name in found)
    return list(found)


def test_short_ones_stay():
    assert shown("plain", "oltr-0", "") == ["plain", "oltr-0", ""]
    assert short_names({}) == {}


def test_of_long_ones_stays_what_differs():
    assert shown(f"{START}plain-0", f"{START}oltr-0") == ["…lr0.05-plain-0", "…lr0.05-oltr-0"]
    assert shown(f"{START}plain-0", "oltr-0") == ["camera-traps-2026-re…ined-lr0.05-plain-0", "oltr-0"]
    assert shown(f"{START}plain-0") == ["camera-traps-2026-re…ined-lr0.05-plain-0"]


def test_equal_ones_are_numbered():
    ends = ("x" * 30, "y" * 30)
    names = shown(*(f"{'a' * 25}{end}{'b' * 25}" for end in ends), "a", most=20)
    assert names == ["aaaaaaaa…bbbbbbb (1)", "aaaaaaaa…bbbbbbb (2)", "a (3)"]
    # One run is already called what the numbering would give another.
    assert len(set(shown("left-1-right", "left-2-right", "le…ht (1)", most=9))) == 3


def test_the_legend_has_the_columns_that_fit():
    def columns(*labels):
        figure, axes = run_axes({"any": 0}, 6, 4)
        for label in labels:
            axes.plot([0, 1], label=label)
        axes.set(xlabel="x", ylabel="y")
        legend_below(figure, axes.lines)
        as_png(figure)
        box = figure.legends[0].get_window_extent()
        assert box.width < figure.bbox.width
        return figure.legends[0]._ncols, figure.get_figheight()

    assert columns("a", "b", "c") == (3, 4)
    assert columns("name-" * 6, "b") == (2, 4)
    assert columns("name-" * 10, "b", "c", "d") == (1, pytest.approx(4 + 2 * 0.17))
    assert columns("many\nlines", "b", "c", "d") == (4, 4)


@pytest.mark.parametrize("name", ["_draft", "_child0", "a $\\frac{$ b"])
@pytest.mark.parametrize("figure", [calibration, open_classes_sweep, oscr, risk_coverage, threshold_sweep])
def test_the_legend_has_a_run_of_any_name(monkeypatch, figure, name):
    names = [f"new {number % 3}" for number in range(31)]
    monkeypatch.setattr(open_classes_sweep, "open_classes", lambda run: names)
    drawn = figure.draw([MadeUpRun(splits(), name=each) for each in (name, "other")])
    said = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert said[0].startswith(name) and said[1].startswith("other")
    as_png(drawn)


@pytest.mark.parametrize("figure", [oscr, threshold_sweep])
def test_long_names_do_not_make_a_figure_wider(figure):
    sizes = []
    for names in (("a", "b"), [f"{START * 2}{number}-attempt" for number in range(8)]):
        drawn = figure.draw([MadeUpRun(splits(), name=name) for name in names])
        as_png(drawn)
        sizes.append(drawn.get_tightbbox().width)
        heights = [axes.get_position().height * drawn.get_figheight() for axes in drawn.axes]
        assert min(heights) > 1.2  # inches that are left to the lines
    assert sizes[1] == pytest.approx(sizes[0], abs=0.2)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ((70, 74), (52, 92)),
        ((2, 6), (0, 40)),
        ((97, 99), (60, 100)),
        ((10, 90), (10, 90)),
        ((-5, 120), (0, 100)),
    ],
)
def test_an_axis_of_percent_has_a_least_span(data, expected):
    _, axes = run_axes({"any": 0})
    axes.set_ylim(*data)
    keep_slopes_honest(axes)
    assert axes.get_ylim() == pytest.approx(expected)


def test_thresholds_in_words():
    assert threshold_words([0.1, 0.1]) == "threshold 0.1"
    assert threshold_words([-2, 0.33333, -8.25]) == "thresholds −8.25 to 0.333"
