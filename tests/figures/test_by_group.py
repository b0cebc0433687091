"""The figure of accuracy by group: which groups are drawn, in which order, and what is marked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from oltr.errors import UserError
from oltr.figures import by_group
from oltr.metrics import group_accuracy
from tests.figures.few_outputs import MadeUpRun, as_png, splits


def measured(shares: dict[str, float], images: int = 20):
    """Groups of so many images of one class, of which these shares are right."""
    right = np.concatenate([np.arange(images) < round(share * images) for share in shares.values()])
    groups = np.repeat(list(shares), images)
    return group_accuracy(torch.from_numpy(np.where(right, 0, 1)), torch.zeros(len(right), dtype=int), groups)


def labels(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_groups_from_the_worst_and_the_worst_marked():
    found = measured({"mid": 0.5, "high $5": 0.9, "low": 0.1})
    figure = by_group.by_group_figure({"site": {"run": found}})
    (axes,) = figure.axes
    assert labels(axes) == ["low  (20)", "mid  (20)", "high $5  (20)"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the worst is at the top"
    marked = [to_hex(label.get_color()) for label in axes.get_yticklabels()]
    assert marked[0] == to_hex(by_group.MARKED) and by_group.MARKED not in marked[1:]
    dots = {
        line.get_ydata()[0]: line.get_xdata()[0]
        for line in axes.lines
        if line.get_marker() == "o" and len(line.get_xdata())
    }
    assert [dots[place] for place in (0, 1, 2)] == pytest.approx([10, 50, 90])
    assert "gap 80.0 points" in axes.get_title(loc="left")
    as_png(figure)


def test_of_many_groups_the_worst_and_the_best():
    found = measured({f"site {number:02}": number / 40 for number in range(40)}, images=40)
    figure = by_group.by_group_figure({"site": {"run": found}})
    names = [label.split("  ")[0] for label in labels(figure.axes[0])]
    assert names == [f"site {number:02}" for number in (*range(15), *range(35, 40))]
    assert [text.get_text() for text in figure.axes[0].texts] == ["20 groups are not shown"]
    as_png(figure)


def test_of_many_groups_those_with_few_images_are_left_out_first():
    large = measured({f"site {number:02}": number / 25 for number in range(25)}, images=25)
    images = torch.zeros(25 * 25 + 10, dtype=int)
    names = [f"site {number:02}" for number in range(25) for _ in range(25)] + [f"x{n}" for n in range(10)]
    right = np.concatenate([np.arange(25) < number for number in range(25)] + [np.zeros(10, dtype=bool)])
    found = group_accuracy(torch.from_numpy(np.where(right, 0, 1)), images, names)
    assert by_group.shown_groups({"run": found})[:15] == by_group.shown_groups({"run": large})[:15]
    assert (
        len(by_group.shown_groups({"run": large})) == 25 and len(by_group.shown_groups({"run": found})) == 20
    )


def test_several_runs_and_columns_and_groups_that_one_run_lacks():
    runs = {"a": measured({"x": 0.2, "y": 0.6}), "b": measured({"y": 0.1, "z": 0.9})}
    figure = by_group.by_group_figure({"site": runs, "sex": {"a": measured({"f": 0.5, "m": 0.6})}})
    assert [len(labels(axes)) for axes in figure.axes] == [3, 2]
    assert labels(figure.axes[0]) == ["x  (20)", "y  (20)", "z  (20)"]  # y: 0.35 in the mean
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    as_png(figure)


def test_without_a_column_it_says_how_to_name_one():
    with pytest.raises(UserError, match="--by COLUMN"):
        by_group.draw([MadeUpRun(splits())])
