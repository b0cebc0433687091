"""Head, tail and open as one spectrum: accuracies by hand, the open images' share, and odd sets drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.spectrum import FIGURE, spectrum, spectrum_figure
from oltr.metrics.shots import shot_groups
from tests.figures.few_outputs import MadeUpRun, as_png, splits


def spectrum_of(run):
    return spectrum(run.decisions.predictions, run.decisions.labels, run.counts, run.groups)


@pytest.fixture
def small():
    """Class 1 is the largest, class 2 has no test images; one image of class 0 is called unknown."""
    predictions = torch.tensor([0, -1, 1, 0, -1, 1, -1, -1])
    labels = torch.tensor([0, 0, 1, 1, -1, -1, -1, -1])
    return spectrum(predictions, labels, np.array([7, 300, 50]), np.array(["few", "many", "medium"]))


def test_by_hand(small):
    assert small.classes.tolist() == [1, 2, 0] and small.counts.tolist() == [300, 50, 7]
    assert small.groups.tolist() == ["many", "medium", "few"]
    np.testing.assert_array_equal(small.accuracies, [0.5, np.nan, 0.5])
    assert small.means == {"many": 0.5, "medium": None, "few": 0.5, "overall": 0.5}
    assert small.open_images == 4 and small.unknown == 0.75


def test_the_means_are_those_of_the_report():
    run = MadeUpRun(splits(), rule=0.4)
    report, shown = run.measure()["open"], spectrum_of(run)
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
    run = MadeUpRun(splits(unseen=0))
    shown = spectrum_of(run)
    assert shown.unknown is None and shown.open_images == 0
    figure = FIGURE.draw([run])
    assert figure.axes[0].texts[0].get_text() == "no open\nimages"
    assert "open" not in figure.axes[0].get_title(loc="left")
    as_png(figure)


@pytest.mark.parametrize("counts", [[5], [0], np.geomspace(1280, 5, 1000).astype(int)])
def test_one_class_and_a_thousand(counts):
    labels = torch.arange(len(counts)).repeat(2)
    labels = labels[labels % 7 != 1]  # some classes have no test images
    predictions = torch.randint(len(counts), labels.shape, generator=torch.Generator().manual_seed(0))
    shown = spectrum(predictions, labels, np.array(counts), shot_groups(counts))
    if counts[0] == 0:
        with pytest.raises(UserError, match="no training images"):
            spectrum_figure({"a": shown})
    else:
        as_png(spectrum_figure({"a": shown}))


def test_what_cannot_be_drawn(small):
    with pytest.raises(UserError, match="different numbers"):
        spectrum_figure({"a": small, "b": spectrum_of(MadeUpRun(splits()))})
    with pytest.raises(UserError, match="no runs"):
        spectrum_figure({})
    nothing = spectrum(torch.tensor([-1]), torch.tensor([-1]), np.array([5, 5]), np.array(["few", "few"]))
    with pytest.raises(UserError, match="No class has test images"):
        spectrum_figure({"a": nothing})
