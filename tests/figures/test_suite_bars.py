"""Bars of a suite: which rows and numbers, by hand, and how they are drawn."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from oltr.errors import UserError
from oltr.figures.suite_bars import suite_bars, suite_bars_figure
from tests.figures.few_outputs import as_png
from tests.report.sample import sample_report


@dataclass
class Row:
    """What a suite knows of one of its rows."""

    label: str
    seeds: tuple[int, ...]
    published: dict
    reports: dict = field(default_factory=dict)

    def values(self, column):
        part, key = column.split(".")
        found = [(report.data.get(part) or {}).get(key) for report in self.reports.values()]
        return [value for value in found if value is not None]

    def mean(self, column):
        return statistics.fmean(self.values(column)) if self.values(column) else None

    def deviation(self, column):
        return statistics.stdev(self.values(column)) if len(self.values(column)) > 1 else None

    def published_value(self, column):
        part, key = column.split(".")
        return self.published.get(part, {}).get(key)


def row(label, few=(0.1, 0.2, 0.3), seeds=3, published=None, **more):
    """Some of the seeds of a row; 0.7 in the many-shot group, no medium class."""
    made = Row(label, tuple(range(seeds)), published or {})
    made.reports = {seed: sample_report(open={"few": value}, **more) for seed, value in enumerate(few)}
    return made


def test_numbers_by_hand():
    theirs = {"open": {"few": 0.25}, "closed": {"few": 0.9}}
    bars = suite_bars(
        [
            row("a", published=theirs),
            row("cut short", few=(0.1,)),
            row("b", few=(0.4,) * 3),
            row("none", few=()),
        ]
    )
    assert bars.part == "open" and bars.labels == ("a", "b") and bars.left_out == ("cut short", "none")
    assert bars.measures == ("many", "few", "overall") and bars.seeds == 3
    np.testing.assert_allclose(bars.means, [[0.7, 0.2, 0.475], [0.7, 0.4, 0.475]])
    np.testing.assert_allclose(bars.deviations, [[0, 0.1, 0], [0, 0, 0]], atol=1e-12)
    np.testing.assert_array_equal(bars.published, [[np.nan, 0.25, np.nan], [np.nan] * 3])


def test_one_seed_has_no_deviation_and_no_open_images_mean_the_closed_set():
    bars = suite_bars([row("a", few=(0.5,), seeds=1, with_open=False)])
    assert bars.part == "closed" and np.isnan(bars.deviations).all()
    np.testing.assert_allclose(bars.means, [[0.75, 0.3, 0.525]])
    figure = suite_bars_figure(bars)
    assert figure.axes[0].get_ylabel() == "accuracy (%)"
    as_png(figure)


def test_few_rows_stand():
    figure = suite_bars_figure(suite_bars([row("a", published={"open": {"few": 0.25}}), row("b")]))
    axes = figure.axes[0]
    heights = sorted(bar.get_height() for bar in axes.patches)
    assert heights == pytest.approx(sorted([70, 20, 47.5] * 2))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert axes.get_ylabel() == "open-set accuracy (%)\nmean ± deviation over 3 seeds"
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["many", "few", "overall", "published"]
    as_png(figure)


def test_many_rows_and_long_labels_lie_down():
    rows = [row("memory feature, selector, reachability"), *(row(f"plain + {n}") for n in range(20))]
    figure = suite_bars_figure(suite_bars([*rows, row("a $ and a $", few=())]))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [row.label for row in rows]
    assert len(axes.patches) == 3 * 21 and max(bar.get_width() for bar in axes.patches) == pytest.approx(70)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top
    assert figure.get_suptitle() == "not finished, left out: a $ and a $"
    as_png(figure)
    assert len(suite_bars_figure(suite_bars(rows[:1])).axes[0].get_yticklabels()) == 1


def test_nothing_finished():
    with pytest.raises(UserError, match="No row is finished"):
        suite_bars([row("a", few=(0.1,))])


def test_rates_of_identification():
    made = Row("a", (0, 1), {"identify": {"rank1": 0.7}})
    made.reports = {
        seed: SimpleNamespace(data={"identify": {"many": 0.8, "zero": None, "rank1": 0.5 + 0.1 * seed}})
        for seed in (0, 1)
    }
    bars = suite_bars([made])
    assert bars.part == "identify" and bars.measures == ("many", "rank1")
    np.testing.assert_allclose(bars.means, [[0.8, 0.55]])
    np.testing.assert_array_equal(bars.published, [[np.nan, 0.7]])
    figure = suite_bars_figure(bars)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["many", "full test", "published"]
    as_png(figure)
