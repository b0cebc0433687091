"""Head, tail and open as one spectrum: accuracies by hand, the open images' share, and odd sets drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.spectrum import spectrum, spectrum_figure
from oltr.runs.decisions import decide
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import COUNTS, as_png, splits


def said(classes, labels, sure, num_classes=3):
    """Images given to `classes` with that probability."""
    logits = torch.zeros(len(classes), num_classes, dtype=torch.float64)
    rest = (1 - torch.tensor(sure, dtype=torch.float64)) / (num_classes - 1)
    logits += rest[:, None].log()
    logits[torch.arange(len(classes)), torch.tensor(classes)] = torch.tensor(sure).double().log()
    return Outputs(logits.float(), torch.tensor(labels), torch.zeros(len(classes), 2))


@pytest.fixture
def small():
    """Class 1 is the largest, class 2 has no test images; one image of class 0 is called unknown."""
    test = said([0, 0, 1, 0], [0, 0, 1, 1], [0.9, 0.4, 0.9, 0.9])
    unseen = said([0, 1, 2, 0], [-1] * 4, [0.4, 0.9, 0.4, 0.45])
    return spectrum(decide(test, unseen, threshold=0.5), [7, 300, 50])


def test_by_hand(small):
    assert small.classes.tolist() == [1, 2, 0] and small.counts.tolist() == [300, 50, 7]
    assert small.groups.tolist() == ["many", "medium", "few"]
    np.testing.assert_array_equal(small.accuracies, [0.5, np.nan, 0.5])
    assert small.means == {"many": 0.5, "medium": None, "few": 0.5, "overall": 0.5}
    assert small.open_images == 4 and small.unknown == 0.75


def test_the_means_are_those_of_the_report():
    outputs = splits()
    report = evaluate(outputs, "abcd", COUNTS, method="plain", backbone="x", threshold=0.4)["open"]
    shown = spectrum(decide(outputs["test"], outputs["open"], threshold=0.4), COUNTS)
    assert shown.means == pytest.approx({name: report[name] for name in shown.means})
    assert shown.unknown == pytest.approx(report["unknown_recall"]) and 0 < shown.unknown < 1


def test_the_picture(small):
    figure = spectrum_figure({"a": small, "b": small})
    first, second, ground = figure.axes
    places = [points.get_offsets().tolist() for points in first.collections]
    assert [[1, 50]] in places and [[3, 50]] in places
    assert first.patches[0].get_height() == 75  # the open images' bar, beyond the last class
    assert first.patches[0].get_x() > 3.5 and ground.get_xlim()[1] > 3.5
    assert "of open images 75.0 % called unknown" in second.get_title(loc="left")
    values = np.concatenate([area.get_data().values for area in ground.patches])
    np.testing.assert_array_equal(values, [300, 50, 7])
    assert ground.get_yscale() == "log" and "(log)" in ground.get_ylabel()
    assert "open-set" in first.get_ylabel() and "%" in first.get_ylabel()
    as_png(figure)


def test_without_open_images_the_block_says_so():
    outputs = splits(unseen=0)
    shown = spectrum(decide(outputs["test"]), COUNTS)
    assert shown.unknown is None and shown.open_images == 0
    figure = spectrum_figure({"a": shown})
    assert figure.axes[0].texts[0].get_text() == "no open\nimages"
    assert "open" not in figure.axes[0].get_ylabel() and "open" not in figure.axes[0].get_title(loc="left")
    as_png(figure)


@pytest.mark.parametrize("counts", [[5], [0], np.geomspace(1280, 5, 1000).astype(int)])
def test_one_class_and_a_thousand(counts):
    labels = torch.arange(len(counts)).repeat(2)
    labels = labels[labels % 7 != 1]  # some classes have no test images
    logits = torch.randn(len(labels), len(counts), generator=torch.Generator().manual_seed(0))
    shown = spectrum(decide(Outputs(logits, labels, torch.zeros(len(labels), 2))), counts)
    if counts[0] == 0:
        with pytest.raises(UserError, match="no training images"):
            spectrum_figure({"a": shown})
    else:
        as_png(spectrum_figure({"a": shown}))


def test_what_cannot_be_drawn(small):
    outputs = splits()
    other = spectrum(decide(outputs["test"]), COUNTS)
    with pytest.raises(UserError, match="different numbers"):
        spectrum_figure({"a": small, "b": other})
    with pytest.raises(UserError, match="no runs"):
        spectrum_figure({})
    with pytest.raises(UserError, match="2 training counts but 4"):
        spectrum(decide(outputs["test"]), [5, 5])
    with pytest.raises(UserError, match="No class has test images"):
        nothing = Outputs(torch.zeros(0, 2), torch.zeros(0), torch.zeros(0, 2))
        unseen = Outputs(torch.zeros(3, 2), torch.full((3,), -1), torch.zeros(3, 2))
        spectrum_figure({"a": spectrum(decide(nothing, unseen), [5, 5])})
