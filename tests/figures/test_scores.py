"""Histograms of γ and of any score: counts by hand, by a loop, and what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures import reachability, scores
from oltr.figures.scores import score_histogram, score_histogram_figure
from oltr.openset import RejectionRule
from oltr.runs.explain.score_place import values_by_group
from tests.figures.few_outputs import COUNTS, MadeUpRun, as_png, splits

BY_HAND = {"many": np.array([0.0, 0.0, 1.0]), "few": np.array([3.0]), "open": np.array([3.0, 4.0])}


def histogram(outputs, score="softmax", counts=COUNTS, **more):
    run = MadeUpRun(outputs, counts, RejectionRule(score, 0.4))
    return score_histogram(values_by_group(run), score, **more)


def test_counts_by_hand():
    run = score_histogram(BY_HAND, "reachability", bins=4)
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
    run = MadeUpRun(splits(), rule=RejectionRule(score, 0.4))
    found = score_histogram(values_by_group(run), score, bins=7)
    slow = {kind: np.zeros(7, dtype=int) for kind in ("many", "medium", "few", "open")}
    for split in ("test", "open"):
        values = run.scored(split).values.tolist()
        for value, label in zip(values, run.outputs[split].labels.tolist(), strict=True):
            kind = "open" if label == -1 else ("many", "medium", "medium", "few")[label]
            inner = sum(value >= edge for edge in found.edges[1:-1])
            slow[kind][inner] += 1
    assert found.counts.keys() == slow.keys()
    for kind in slow:
        np.testing.assert_array_equal(found.counts[kind], slow[kind])


def test_a_run_without_a_memory_has_no_reachability():
    with pytest.raises(UserError, match="has a memory"):
        reachability.draw([])
    with pytest.raises(UserError, match=r"(?s)memory.*has none"):
        reachability.draw([MadeUpRun(splits(memory=False))])
    figure = reachability.draw([MadeUpRun(splits(), method="oltr")])
    assert "γ" in figure.axes[-1].get_xlabel()
    assert not any(line.get_linestyle() == "--" for axes in figure.axes for line in axes.lines)


def test_what_cannot_be_counted():
    with pytest.raises(UserError, match="no test images"):
        scores.draw([MadeUpRun({})])
    astray = splits()
    astray["open"].reachability[3] = torch.nan
    with pytest.raises(UserError, match="NaN or infinite for 1 open images"):
        histogram(astray, "reachability")
    with pytest.raises(UserError, match="no runs"):
        score_histogram_figure({})


def test_a_bar_is_a_share_of_its_group():
    figure = score_histogram_figure({"oltr": score_histogram(BY_HAND, "reachability", bins=4)})
    shares = [axes.patches[0].get_data().values.tolist() for axes in figure.axes]
    assert shares == [pytest.approx([200 / 3, 100 / 3, 0, 0]), [0, 0, 0, 100], [0, 0, 0, 100]]
    assert "γ" in figure.axes[-1].get_xlabel() and "%" in figure.get_supylabel()


@pytest.mark.parametrize(
    ("score", "threshold", "side"), [("softmax", 0.1, "below"), ("reachability", 9, "above")]
)
def test_the_threshold_is_marked_and_in_view(score, threshold, side):
    runs = {
        "told": histogram(splits(), score, threshold=threshold),
        "not told": histogram(splits(), score),
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


def test_a_run_shows_the_threshold_of_its_rule():
    figure = scores.draw([MadeUpRun(splits(), rule=0.35, name="a")])
    assert figure.axes[0].get_title(loc="left") == "a\nthreshold 0.35, unknown below it"


@pytest.mark.parametrize("more", [{}, {"unseen": 0}, {"test": 1, "unseen": 1}, {"test": 5, "unseen": 0}])
def test_odd_sets_are_drawn(more):
    as_png(score_histogram_figure({"one": histogram(splits(**more), "reachability")}))
    run = histogram(splits(classes=1, **more), counts=[7])  # each value is 1
    assert run.edges[0] < 1 < run.edges[-1]
    as_png(score_histogram_figure({"one": run, "other": histogram(splits())}))
