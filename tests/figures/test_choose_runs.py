"""Which of many runs a figure shows: the baseline, the best, the best with a memory, and others."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures import choose_runs, method_figure
from oltr.figures.open_classes_sweep import with_open_classes
from oltr.runs.outputs import Outputs
from tests.figures.few_outputs import MadeUpRun, splits


def better(name, right, method="focal"):
    """A run that names this share of its test images rightly, of four classes with ten each."""
    labels = torch.arange(4).repeat_interleave(10)
    predictions = torch.where(torch.arange(40) % 10 < 10 * right, labels, (labels + 1) % 4)
    test = Outputs(5 * torch.eye(4)[predictions], labels, torch.rand(40, 2))
    if method == "oltr":
        test = replace(test, embeddings=test.features, reachability=torch.rand(40))
    return MadeUpRun(splits() | {"test": test}, name=name, method=method)


def names(runs):
    return [run.name for run in runs]


def without_open(run):
    return MadeUpRun({"test": run.outputs["test"]}, name=run.name, method=run.method)


MANY = [better("a", 0.4), better("b", 0.5), better("c", 0.6), better("d", 0.4), better("e", 0.3, "oltr"),
        better("f", 0.2, "plain"), better("g", 0.9), better("h", 0.4, "oltr")]  # fmt: skip


def test_panels_show_what_matters_in_the_order_given():
    assert names(choose_runs.panels(MANY)) == ["a", "f", "g", "h"]
    assert names(choose_runs.panels(MANY[:3])) == ["a", "b", "c"]
    # Without a plain model the first is the baseline; the best may also be the one with a memory.
    assert names(choose_runs.panels([*MANY[:5], better("o", 1.0, "oltr")])) == ["a", "b", "c", "o"]


def test_the_best_by_accuracy_and_then_by_place():
    assert names(choose_runs.best_first(MANY)) == ["g", "c", "b", "a", "d", "h", "e", "f"]
    assert MANY[6].accuracy == pytest.approx(0.9)


def test_gains_are_over_the_plain_model_wherever_it_stands():
    assert names(choose_runs.baseline_first(MANY)) == ["f", "a", "b", "g", "h"]
    assert names(choose_runs.baseline_first(MANY[:2])) == ["a", "b"]


def test_gains_leave_out_who_was_tested_on_other_images():
    other = without_open(MANY[1])
    assert names(choose_runs.baseline_first([MANY[0], other, MANY[2]])) == ["a", "c"]
    assert names(choose_runs.baseline_first([MANY[0], other])) == ["a", "b"]  # who then say why not


def test_panels_of_the_same_images_go_with_the_best():
    runs = [without_open(MANY[0]), MANY[1], without_open(MANY[3]), MANY[2]]
    assert names(choose_runs.panels_of_the_same_images(runs)) == ["b", "c"]


def test_runs_without_open_images_are_left_out_if_others_have_them():
    runs = [MANY[0], without_open(MANY[1]), MANY[2]]
    assert names(choose_runs.with_open(runs)) == ["a", "c"]
    assert names(choose_runs.with_open(runs[1:2])) == ["b"]
    # Of none of them the data are there: all are kept, to say so.
    assert names(with_open_classes(runs)) == ["a", "c"]


def test_runs_with_a_memory_are_found_among_many():
    runs = [better(name, 0.5) for name in "abcdef"] + [better("o", 0.5, "oltr")]
    assert names(choose_runs.with_memory(runs)) == ["o"] and choose_runs.with_memory(runs[:-1]) == []
    many = [better(str(place), place / 10, "oltr") for place in range(6)]
    assert names(choose_runs.with_memory(many)) == names(choose_runs.with_meta_embedding(many)) == [*"2345"]


def test_a_figure_of_one_network_is_of_the_first_run_that_can():
    asked = []

    def attention(run):
        asked.append(run.name)
        if run.name == "b":
            raise UserError("b has no attention.")
        return Figure()

    runs = [better("a", 0.5), better("b", 1.0), better("c", 0.9), better("d", 0.2)]
    drawn = choose_runs.first_that_can(choose_runs.best_first(runs), attention)
    assert drawn.get_suptitle() == "c" and asked == ["b", "c"]
    with pytest.raises(UserError, match="b has no attention"):
        choose_runs.first_that_can(runs[1:2], attention)
    assert choose_runs.first_that_can(runs[:1], attention).get_suptitle() == ""  # it is clear whose


def test_the_method_is_drawn_of_the_best_run_that_has_most_of_it(monkeypatch):
    monkeypatch.setattr(method_figure, "of_run", lambda run: Figure())
    runs = [better("a", 1.0), better("b", 0.2, "oltr"), better("c", 0.6, "oltr")]
    assert method_figure.draw(runs).get_suptitle() == "c"
    assert method_figure.draw([better("d", 0.2), better("e", 0.6)]).get_suptitle() == "e"
