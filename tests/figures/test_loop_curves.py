"""The curves of the loop show means against labels and weeks."""

from __future__ import annotations

import numpy as np
import pytest

from oltr.errors import UserError
from oltr.figures.loop_curves import LoopCurve, loop_figure


def test_lines_are_means_over_seeds():
    labels = np.array([[10.0, 20.0], [10.0, 30.0]])
    accuracy = np.array([[0.5, 0.7], [0.6, 0.9]])
    figure = loop_figure([LoopCurve("discover", labels, accuracy), LoopCurve("random", labels, accuracy / 2)])
    spent, weekly = figure.axes
    np.testing.assert_allclose(spent.lines[0].get_xdata(), [10, 25])
    np.testing.assert_allclose(weekly.lines[0].get_xdata(), [1, 2])
    for axes in (spent, weekly):
        np.testing.assert_allclose(axes.lines[0].get_ydata(), [55, 80])
        np.testing.assert_allclose(axes.lines[1].get_ydata(), [27.5, 40])
    assert [text.get_text() for text in spent.get_legend().get_texts()] == ["discover", "random"]


def test_nothing_to_draw():
    with pytest.raises(UserError, match="no curves"):
        loop_figure([])
