"""The class distribution in characters."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from oltr.report import bars
from oltr.report.bars import distribution_bars


def test_the_example_in_the_docstring():
    assert doctest.testmod(bars).failed == 0


@pytest.mark.parametrize("counts", [[], [0, 0]])
def test_nothing_to_draw(counts):
    assert "no training images" in distribution_bars(counts)


@pytest.mark.parametrize("classes", [1, 7, 60, 61, 8142])
def test_as_wide_as_there_are_classes_up_to_the_width(classes):
    counts = np.arange(1, classes + 1)
    lines = distribution_bars(counts, width=60, height=4).split("\n")
    assert len(lines) == 5
    assert f"{classes:,}" in lines[0].split("┤")[0]  # the largest count stands at the top
    assert lines[-1].count("─") == min(classes, 60)
    assert f"{classes:,} class" in lines[-1]


def test_the_order_of_the_classes_does_not_matter():
    assert distribution_bars([1, 5, 3]) == distribution_bars(np.array([5, 3, 1]))


def test_a_class_with_one_image_is_still_seen():
    bottom = distribution_bars([1000, 1], width=2, height=3).split("\n")[-2]
    assert bottom.endswith("█▁")


def test_equal_classes_fill_the_block():
    assert distribution_bars([9, 9, 9], height=2).count("█") == 6
