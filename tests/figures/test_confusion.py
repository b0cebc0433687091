"""The confusion matrix by shot group, against a loop over the images."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.confusion import FIGURE, TAKEN_FOR, TRUE, confusion, confusion_figure
from oltr.metrics.shots import shot_groups
from tests.figures.few_outputs import MadeUpRun
from tests.helpers.separable import outputs, separable, strangers

COUNTS = [500, 300, 50, 40, 9, 5]


def drawn(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue().startswith(b"\x89PNG")


def test_equals_a_loop():
    splits = {"test": separable([80] * 6, seed=0, height=1.5), "open": strangers(50, 6, seed=1)}
    made = MadeUpRun(splits, COUNTS, 0.5).decisions
    groups, slow = shot_groups(COUNTS), np.zeros((4, 5), dtype=int)
    for label, prediction in zip(made.labels.tolist(), made.predictions.tolist(), strict=True):
        if prediction == -1:
            column = "unknown"
        elif prediction == label:
            column = "correct class"
        else:
            column = f"other {groups[prediction]}"
        slow[TRUE.index("open" if label == -1 else groups[label]), TAKEN_FOR.index(column)] += 1
    assert slow[3, 0] == 0
    slow[3, 0] = -1
    matrix = confusion(made.predictions, made.labels, groups)
    np.testing.assert_array_equal(matrix, slow)
    assert (matrix[matrix >= 0] > 0).all()  # the case is a telling one


def test_by_hand():
    predictions, labels = torch.tensor([0, 2, 2, 1]), torch.tensor([0, 2, 0, 2])
    expected = [[1, 0, 0, 1, 0], [0] * 5, [1, 0, 1, 0, 0], [-1, 0, 0, 0, 0]]
    assert confusion(predictions, labels, np.array(["many", "medium", "few"])).tolist() == expected


def test_the_figure_says_the_numbers():
    matrix = np.array([[3, 0, 0, 0, 1], [0] * 5, [0, 2, 0, 0, 0], [-1, 1, 0, 0, 1999]])
    figure = confusion_figure({"ours": matrix})
    axes = figure.axes[0]
    cells = [text.get_text() for text in axes.texts]
    assert cells[:5] == ["75.0\n(3)", "0.0\n(0)", "0.0\n(0)", "0.0\n(0)", "25.0\n(1)"]
    assert cells[5:10] == ["–"] * 5
    assert cells[15] == "–" and cells[19] == "100.0\n(1,999)"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted", "true")
    assert "percent" in figure.get_supxlabel()


@pytest.mark.parametrize("runs", [1, 2, 5])
def test_runs_side_by_side(runs):
    figure = confusion_figure({f"run {n}": np.full((4, 5), n) for n in range(runs)})
    assert len(figure.axes) == runs and drawn(figure)


def test_odd_cases_are_drawn_or_refused():
    one = confusion(torch.tensor([0]), torch.tensor([0]), np.array(["few"]))  # one image, one class
    assert one.sum() == 0 and one[2, 0] == 1
    assert drawn(FIGURE.draw([MadeUpRun({"test": outputs(torch.zeros(1, 1))}, [5])]))
    with pytest.raises(UserError, match="no run"):
        confusion_figure({})
