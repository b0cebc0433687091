"""Nearest classes, the place of a score and the picture of an explanation, by hand and with odd names."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.figures.explanation_figure import explanation_figure
from oltr.figures.run_names import shortened
from oltr.figures.save import save_figure
from oltr.openset import SCORES, RejectionRule
from oltr.openset.moments import class_means
from oltr.runs.explain.explanation import Candidate, Explanation, Missing, Nearest, Verdict, part
from oltr.runs.explain.nearest_classes import nearest_classes
from oltr.runs.explain.score_place import score_place
from oltr.runs.explain.text import explanation_text
from tests.figures.few_outputs import MadeUpRun, splits

ODD = ["a$b$c", "雪 豹", "x_{^", "n" * 200, "plain"]


def explanation(**parts) -> Explanation:
    given = {name: Missing(f"no {name}") for name in ("place", "nearest", "concepts", "attention")} | parts
    return Explanation(
        image="/somewhere/my $image$.png",
        run="runs/x",
        method="oltr",
        picture=np.zeros((16, 16, 3), dtype=np.uint8),
        candidates=[Candidate(name, 0.5**n, n, "few") for n, name in enumerate(ODD, 1)],
        verdict=Verdict(True, RejectionRule("softmax", 0.1, 0.05), 0.05),
        **given,
    )


def words(figure) -> str:
    figure.savefig(io.BytesIO())
    texts = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return " ".join(" ".join(text.get_text() for text in texts).split())


def test_nearest_by_hand():
    centres = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0], [0.0, 1.0]])
    there = torch.tensor([False, True, True, True])
    found = nearest_classes(torch.zeros(2), centres, there, "centroids")
    assert found.classes.tolist() == [3, 2, 1]  # the nearest of all is not there
    assert found.distances.tolist() == pytest.approx([1.0, 2**0.5, 5.0])
    assert nearest_classes(torch.zeros(2), centres, there, "centroids", top=1).classes.tolist() == [3]


def test_class_means_by_hand():
    features, labels = torch.tensor([[1.0], [3.0], [7.0]]), torch.tensor([0, 0, 2])
    means, images = class_means(features, labels, 3)
    assert means.tolist() == [[2.0], [0.0], [7.0]] and images.tolist() == [2, 0, 1]


@pytest.mark.parametrize("name", ["softmax", "reachability"])
def test_shares_by_a_loop(name):
    run, score = MadeUpRun(splits(), rule=RejectionRule(name, 0.3)), SCORES[name]
    value = float(run.scored("test").values[5])  # its own value is not beyond itself
    found = score_place(run, value)
    tally: dict[str, list[bool]] = {}
    for split in ("test", "open"):
        for each, label in zip(run.scored(split).values.tolist(), run.outputs[split].labels, strict=True):
            kind = "open" if label == -1 else ("many", "medium", "medium", "few")[label]
            tally.setdefault(kind, []).append(each < value if score.higher_is_known else each > value)
    assert found.less_familiar == pytest.approx({kind: np.mean(beyond) for kind, beyond in tally.items()})


def test_a_value_far_outside_is_in_the_picture():
    run = MadeUpRun(splits(unseen=0), rule=RejectionRule("reachability", -3.0))
    place = score_place(run, 50.0)
    figure = explanation_figure(explanation(place=place))
    axes = figure.subfigs[0].axes[2]
    assert axes.get_xlim()[0] < -3 and axes.get_xlim()[1] > 50
    assert "no open images" in words(figure) and set(place.less_familiar.values()) == {0.0}


def test_every_missing_part_says_why():
    told = explanation()
    said, lines = words(explanation_figure(told)), explanation_text(told)
    for name in ("place", "nearest", "concepts", "attention"):
        assert f"no {name}" in said and f"no {name}" in lines
    data = told.to_dict()
    assert data["nearest"] == {"missing": "no nearest"}
    assert data["decision"]["less_familiar"] == {"missing": "no place"}
    assert "softmax 0.05 is below the threshold 0.1" in said and "at most 5 % of the known" in said


def test_odd_names_are_drawn_as_they_are(tmp_path):
    found = nearest_classes(torch.zeros(1), torch.arange(5.0)[:, None], torch.ones(5).bool(), "centroids")
    for examples in (np.zeros((5, 16, 16, 3), dtype=np.uint8), Missing("the $images$ are gone " * 20)):
        figure = explanation_figure(explanation(nearest=Nearest(found, ODD, examples)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            save_figure(figure, tmp_path / "a.png")
    assert "a$b$c" in words(figure) and "雪 豹" in words(figure) and "my $image$.png" in words(figure)


def test_names_are_shortened_in_the_middle():
    assert shortened("abc", 3) == "abc" and shortened("abcdefgh", 6) == "abc…gh"
    assert len(shortened("n" * 200)) == 32


def test_a_part_or_the_reason():
    def fails():
        raise UserError("What.", "Why\nso.", "this")

    assert part(lambda: 3) == 3 and part(fails) == Missing("What. Why so. Try: this")
