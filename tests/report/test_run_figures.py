"""Which runs a figure shows, and figures of loaded runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from oltr.engine.run_folder import RunFolder
from oltr.errors import UserError
from oltr.openset import SCORES
from oltr.report import run_figures
from oltr.report.loaded_run import LoadedRun
from tests.analysis.few_outputs import COUNTS, splits


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


def names(runs):
    return [run.name for run in runs]


def test_gains_are_over_the_plain_model_wherever_it_stands():
    runs = [loaded("a"), loaded("b"), loaded("p", "plain"), *map(loaded, "cde")]
    assert names(run_figures.baseline_first(runs)) == ["p", "a", "b", "c", "d"]
    assert names(run_figures.baseline_first(runs[3:])) == ["c", "d", "e"]
    assert names(run_figures.first_few(runs)) == ["a", "b", "p", "c"]


def test_runs_with_a_memory_are_found_among_many():
    runs = [*map(loaded, "abcdef"), loaded("o", "oltr")]
    assert names(run_figures.with_memory(runs)) == ["o"]
    assert isinstance(run_figures.draw_reachability(run_figures.with_memory(runs)), Figure)
    with pytest.raises(UserError, match="no memory"):
        run_figures.draw_reachability(run_figures.with_memory(runs[:-1]))


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
    assert run_figures.with_meta_embedding([loaded("c"), *runs]) == runs
    figure = run_figures.draw_centroids(runs)
    assert [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes] == [runs[1].name]
    with pytest.raises(UserError, match="no memory"):
        run_figures.draw_centroids(runs[:1])
    with pytest.raises(UserError, match="no memory"):
        run_figures.draw_centroids(run_figures.with_meta_embedding([loaded("c")]))


def with_embeddings(part):
    return replace(part, features=torch.rand(len(part), 2), embeddings=torch.rand(len(part), 2))
