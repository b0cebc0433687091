"""Which runs a figure shows, and figures of loaded runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from oltr.report.loaded_run import LoadedRun

from oltr.errors import UserError
from oltr.openset import SCORES
from oltr.report import run_figures
from oltr.runs.outputs import Outputs
from oltr.training.run_folder import RunFolder
from tests.figures.few_outputs import COUNTS, splits


def loaded(name, method="focal", counts=COUNTS, threshold=0.4, **more):
    outputs = splits(**{"memory": method == "oltr", **more})
    return LoadedRun(
        name=name,
        folder=Path(name),
        method=method,
        class_names="abcd",
        counts=np.array(counts),
        shots="standard",
        outputs=outputs,
        score=SCORES["softmax"],
        threshold=threshold,
        read=outputs,
        data=UserError("The images are gone."),
    )


def better(name, right, method="focal"):
    """A run that names this share of its test images rightly, of four classes with ten each."""
    run, labels = loaded(name, method), torch.arange(4).repeat_interleave(10)
    predictions = torch.where(torch.arange(40) % 10 < 10 * right, labels, (labels + 1) % 4)
    test = Outputs(5 * torch.eye(4)[predictions], labels, torch.rand(40, 2))
    if method == "oltr":
        test = replace(test, embeddings=test.features, reachability=torch.rand(40))
    return replace(run, outputs={**run.outputs, "test": test}, read={**run.read, "test": test})


def test_a_run_with_a_memory_is_drawn():
    assert isinstance(run_figures.draw_reachability([loaded("o", "oltr")]), Figure)
    with pytest.raises(UserError, match="no memory"):
        run_figures.draw_reachability([])


def test_a_figure_of_one_network_is_of_the_best_run_that_can(monkeypatch):
    runs = [better("a", 0.5), better("b", 1.0), better("c", 0.9), better("d", 0.2)]
    asked = []

    def attention_of(network):
        asked.append(network.folder.path.name)
        if asked[-1] == "b":
            raise UserError("b has no attention.")
        return Figure()

    monkeypatch.setattr("oltr.report.model_figures.attention_of", attention_of)
    monkeypatch.setattr(LoadedRun, "manifest", lambda run: None)
    assert run_figures.draw_attention(runs).get_suptitle() == "c" and asked == ["b", "c"]
    with pytest.raises(UserError, match="b has no attention"):
        run_figures.draw_attention(runs[1:2])


def test_the_method_is_drawn_of_the_best_run_that_has_most_of_it(monkeypatch):
    monkeypatch.setattr("oltr.report.model_figures.method_of", lambda network: Figure())
    runs = [better("a", 1.0), better("b", 0.2, "oltr"), better("c", 0.6, "oltr")]
    assert run_figures.draw_method(runs).get_suptitle() == "c"
    assert run_figures.draw_method([better("d", 0.2), better("e", 0.6)]).get_suptitle() == "e"


def test_titles_say_over_whom():
    figure = run_figures.draw_class_gain([loaded("p", "plain"), loaded("q")])
    assert "q over p" in figure.axes[0].get_title(loc="left")
    with pytest.raises(UserError, match="one run only"):
        run_figures.draw_class_gain([loaded("q")])


def test_decisions_know_the_run_s_threshold():
    run = loaded("a", threshold=0.5)
    unknown = run.decisions.predictions == -1
    assert unknown.tolist() == (run.decisions.confidence < 0.5).tolist() and unknown.any()
    assert not (loaded("a", threshold=None).decisions.predictions == -1).any()
    assert run.decisions is run.decisions and len(run.decisions.labels) == 83 + 31
    assert len(loaded("a", unseen=0, threshold=None).decisions.labels) == 83


@pytest.mark.parametrize(
    ("draw", "run", "why"),
    [
        (run_figures.draw_open_classes_sweep, loaded("a"), "The images are gone"),
        (run_figures.draw_open_classes_sweep, loaded("a", unseen=0), "no open images"),
        (run_figures.draw_threshold_sweep, loaded("a", unseen=0), "no open images"),
        (run_figures.draw_oscr, loaded("a", unseen=0), "no open images"),
        (run_figures.draw_method, loaded("nowhere"), "not a run folder"),
        (run_figures.draw_centroids, loaded("nowhere", "oltr"), "is missing"),
    ],
)
def test_what_is_missing_is_said(draw, run, why):
    with pytest.raises(UserError, match=why):
        draw([run])


@pytest.mark.parametrize("draw", [run_figures.draw_distribution, run_figures.draw_spectrum])
def test_runs_that_learned_from_other_counts_share_no_distribution(draw):
    with pytest.raises(UserError, match="different numbers"):
        draw([loaded("a"), loaded("b", counts=[9, 9, 9, 9])])


def test_centroids_are_those_of_runs_that_have_a_memory(tmp_path):
    runs = [loaded(str(tmp_path / name)) for name in "ab"]
    runs = [
        replace(run, outputs={split: with_embeddings(part) for split, part in run.outputs.items()})
        for run in runs
    ]
    memory = {"head.meta.memory.centroids": torch.eye(4)[:, :2], "head.meta.memory.known": torch.ones(4) > 0}
    for run, weights in zip(runs, ({"head.classifier.weight": torch.eye(4)}, memory), strict=True):
        RunFolder(run.folder).save_weights(run.folder / "model.safetensors", weights)
    figure = run_figures.draw_centroids(runs)
    assert [axes.get_title(loc="left").split("\n")[0][-9:] for axes in figure.axes] == [runs[1].name[-9:]]
    with pytest.raises(UserError, match="no memory"):
        run_figures.draw_centroids(runs[:1])
    with pytest.raises(UserError, match="no memory"):
        run_figures.draw_centroids([])


def with_embeddings(part):
    return replace(part, features=torch.rand(len(part), 2), embeddings=torch.rand(len(part), 2))
