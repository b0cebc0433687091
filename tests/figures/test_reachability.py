"""Histograms of γ and of any score: counts by hand, by a loop, and what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.reachability import score_histogram, score_histogram_figure
from oltr.openset import SCORES
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import COUNTS, as_png, splits


def by_hand() -> dict[str, Outputs]:
    """γ of a many-shot class 0, 0, 1, of a few-shot class 3, of open images 3, 4."""
    test = Outputs(
        torch.zeros(4, 2),
        torch.tensor([0, 0, 0, 1]),
        torch.zeros(4, 1),
        reachability=torch.tensor([0.0, 0.0, 1.0, 3.0]),
    )
    unseen = torch.tensor([3.0, 4.0])
    unseen = Outputs(torch.zeros(2, 2), torch.tensor([-1, -1]), torch.zeros(2, 1), reachability=unseen)
    return {"test": test, "open": unseen}


def test_counts_by_hand():
    run = score_histogram(by_hand(), [200, 3], bins=4)
    assert {kind: counts.tolist() for kind, counts in run.counts.items()} == {
        "many": [2, 1, 0, 0],
        "few": [0, 0, 0, 1],
        "open": [0, 0, 0, 2],
    }
    words = [axes.texts[0].get_text() for axes in score_histogram_figure({"run": run}).axes]
    assert [text.split("\n")[0] for text in words] == [
        "many-shot: 3 images",
        "few-shot: 1 image",
        "open: 2 images",
    ]
    assert run.medians == {"many": 0.0, "few": 3.0, "open": 3.5}
    np.testing.assert_allclose(run.edges, [0, 1, 2, 3, 4], atol=0.02)  # but for the share left beyond


@pytest.mark.parametrize("score", ["reachability", "softmax", "max-logit"])
def test_every_image_is_in_the_bin_a_loop_finds(score):
    outputs = splits()
    run = score_histogram(outputs, COUNTS, score, bins=7)
    slow = {kind: np.zeros(7, dtype=int) for kind in ("many", "medium", "few", "open")}
    for split in ("test", "open"):
        values = SCORES[score].value(outputs[split]).tolist()
        for value, label in zip(values, outputs[split].labels.tolist(), strict=True):
            kind = "open" if label == -1 else ("many", "medium", "medium", "few")[label]
            inner = sum(value >= edge for edge in run.edges[1:-1])
            slow[kind][inner] += 1
    assert run.counts.keys() == slow.keys()
    for kind in slow:
        np.testing.assert_array_equal(run.counts[kind], slow[kind])


def test_the_shot_rule_moves_the_border():
    counts = [100, 50, 50, 20]
    assert list(score_histogram(splits(), counts).counts) == ["medium", "open"]
    assert list(score_histogram(splits(), counts, shots="released").counts) == [
        "many",
        "medium",
        "few",
        "open",
    ]


def test_a_method_without_memory_says_so():
    with pytest.raises(UserError, match=r"(?s)memory.*has none"):
        score_histogram(splits(memory=False), COUNTS)


def test_scores_of_changed_images_need_their_outputs():
    with pytest.raises(UserError, match="images that it has changed"):
        score_histogram(splits(), COUNTS, "odin")
    assert score_histogram(splits(), COUNTS, "odin", read=splits()).counts["open"].sum() == 31


def test_what_cannot_be_counted():
    with pytest.raises(UserError, match="no test images"):
        score_histogram({}, COUNTS)
    with pytest.raises(UserError, match="4 classes, but there are 2 counts"):
        score_histogram(splits(), [5, 5])
    astray = splits()
    astray["open"].reachability[3] = torch.nan
    with pytest.raises(UserError, match="NaN or infinite for 1 open images"):
        score_histogram(astray, COUNTS)
    with pytest.raises(UserError, match="no runs"):
        score_histogram_figure({})


def test_a_bar_is_a_share_of_its_group():
    figure = score_histogram_figure({"oltr": score_histogram(by_hand(), [200, 3], bins=4)})
    shares = [axes.patches[0].get_data().values.tolist() for axes in figure.axes]
    assert shares == [pytest.approx([200 / 3, 100 / 3, 0, 0]), [0, 0, 0, 100], [0, 0, 0, 100]]
    assert "γ" in figure.axes[-1].get_xlabel() and "%" in figure.get_supylabel()


@pytest.mark.parametrize(
    ("score", "threshold", "side"), [("softmax", 0.1, "below"), ("reachability", 9, "above")]
)
def test_the_threshold_is_marked_and_in_view(score, threshold, side):
    runs = {
        "told": score_histogram(splits(), COUNTS, score, threshold=threshold),
        "not told": score_histogram(splits(), COUNTS, score),
    }
    figure = score_histogram_figure(runs)
    as_png(figure)
    told, other = figure.axes[::2], figure.axes[1::2]
    for axes in told:
        (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert line.get_xdata()[0] == threshold and axes.get_xlim()[0] < threshold < axes.get_xlim()[1]
    assert told[0].get_title(loc="left") == f"told\nthreshold {threshold}, unknown {side} it"
    assert all(line.get_linestyle() == "-" for axes in other for line in axes.lines)
    assert other[0].get_title(loc="left") == "not told"
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["median of the group", "threshold of the run"]


@pytest.mark.parametrize("more", [{}, {"unseen": 0}, {"test": 1, "unseen": 1}, {"test": 5, "unseen": 0}])
def test_odd_sets_are_drawn(more):
    as_png(score_histogram_figure({"one": score_histogram(splits(**more), COUNTS)}))
    run = score_histogram(splits(classes=1, **more), [7], "softmax")  # each value is 1
    assert run.edges[0] < 1 < run.edges[-1]
    as_png(score_histogram_figure({"one": run, "other": score_histogram(splits(), COUNTS, "softmax")}))
