"""Rows measured on finished runs: under which rule, and without images that were looked at."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

from oltr.openset import Odin
from oltr.runs.outputs import scored_by
from oltr.runs.trained_run import TrainedRun
from oltr.runs.tune_odin import tune_odin
from oltr.suites import measure as module
from oltr.suites import train
from oltr.suites.measure import Results, measure
from oltr.suites.suite_file import SuiteRow
from tests.helpers import pretended
from tests.suites.tiny_suite import ROWS, TinySuite


@pytest.fixture(scope="module")
def trained(pack, tmp_path_factory):
    """A suite with all its runs; read-only."""
    tiny = TinySuite(tmp_path_factory.mktemp("suite"), pack)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "CommandProcess", pretended.Here)
        assert tiny.results().failed() == []
    return tiny


def test_every_row_is_the_report_of_its_run_under_its_rule(trained):
    rows = Results(trained.part, trained.data.manifest).rows
    for row, name in zip(rows[:3], ("plain", "class-aware", "oltr"), strict=True):
        run = TrainedRun(trained.part.out / f"{name}-0")
        assert row.reports[0].data == run.report.data  # the run's own rule
        assert row.reports[0].open.unknown_rate == 0.05 == run.rule.unknown_rate
    run = TrainedRun(trained.part.out / "oltr-0")
    rule = run.other_rule("reachability", unknown_rate=0.2)
    assert rows[3].reports[0].data == run.under(rule).measure().data
    assert (rule.score, rule.unknown_rate) == ("reachability", 0.2)


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({}, ("softmax", None, 0.05)),
        ({"threshold": 0.1}, ("softmax", 0.1, None)),
        ({"unknown_rate": 0.3}, ("softmax", None, 0.3)),
        ({"score": "energy"}, ("energy", None, 0.05)),
        ({"score": "openmax", "threshold": 0.5}, ("openmax", 0.5, None)),
    ],
)
def test_what_a_row_names_and_the_rest_is_the_runs(trained, row, rule):
    run = TrainedRun(trained.part.out / "plain-0")
    found = measure(SuiteRow("plain", **row), run).open
    score, threshold, rate = rule
    assert (found.score, found.unknown_rate) == (score, rate)
    assert threshold is None or found.threshold == threshold


def test_a_score_that_cannot_be_measured_leaves_the_other_rows(trained, pack, tmp_path):
    more = TinySuite(tmp_path, pack, ROWS + "  - {method: plain, score: reachability, unknown_rate: 0.2}\n")
    results = Results(dataclasses.replace(more.part, out=trained.part.out), more.data.manifest)
    assert [bool(row.reports) for row in results.rows] == [True, True, True, True, False]
    assert "memory" in results.failed()[0] and "\n" not in results.failed()[0]


def test_a_run_that_cannot_be_opened_is_a_failure(trained, pack, tmp_path):
    tiny = TinySuite(tmp_path, pack)
    results = Results(tiny.part, tiny.data.manifest)
    results.add(tiny.part.runs[2])
    assert [bool(row.failures) for row in results.rows] == [False, False, True, True]
    assert "is not a run folder" in results.failed()[0]


@pytest.mark.parametrize("validation", [True, False])
def test_a_tuned_score_is_not_measured_on_images_it_was_tuned_by(trained, monkeypatch, validation):
    few = partial(tune_odin, temperatures=(1.0, 1000.0), noises=(0.0, 0.002))
    monkeypatch.setattr(module, "tune_odin", few)
    run, manifest = TrainedRun(trained.part.out / "plain-0"), trained.data.manifest
    if not validation:  # a pack is read by row, so the rows stay
        splits = manifest.table["split"].replace({"val": "train"})
        manifest = dataclasses.replace(manifest, table=manifest.table.assign(split=splits))
    run.manifest = manifest
    found = measure(SuiteRow("plain", score="odin", threshold=0, tune="open"), run).open

    known, borrowed = module._with_validation(manifest)
    best = few(run, known)
    assert (len(best.held_out), len(borrowed)) == ((6, 0) if validation else (6, 12))
    assert known.sizes()["val"] == (18 if validation else 12)
    assert f"6 open images{'' if validation else ' and 12 test images'}, which are left out" in found.tuned
    sides = []
    for split, seen in (("test", borrowed), ("open", best.held_out)):
        values = scored_by(best.score, run.own_outputs(best.score)[split]).unknown.tolist()
        sides.append([value for number, value in enumerate(values) if number not in seen])
    assert [len(side) for side in sides] == [24 - len(borrowed), 6]
    wins = sum((u > k) + 0.5 * (u == k) for k in sides[0] for u in sides[1])
    assert found.auroc == pytest.approx(wins / (len(sides[0]) * 6), abs=1e-6)


def test_a_row_may_name_the_noise_of_odin(trained):
    run = TrainedRun(trained.part.out / "plain-0")
    run.manifest = trained.data.manifest
    published = {"open": {"auroc": 0.9}, "source": "somewhere"}
    report = measure(SuiteRow("plain", score="odin", threshold=0, noise=0.01), run, published)
    score = Odin(1000.0, 0.01)
    sides = [run.scored(split, score).unknown.tolist() for split in ("test", "open")]
    wins = sum((u > k) + 0.5 * (u == k) for k in sides[0] for u in sides[1])
    assert report.open.auroc == pytest.approx(wins / (len(sides[0]) * len(sides[1])), abs=1e-6)
    assert report.open.tuned == "T = 1000, ε = 0.01" and report.expect == published
    other = measure(SuiteRow("plain", score="odin", threshold=0), run).open  # all images in either
    assert other.auroc != report.open.auroc and other.tuned is None


def test_groups_are_counted_as_the_published_row_of_the_suite_counts_them(trained):
    run = TrainedRun(trained.part.out / "plain-0")
    run.manifest = trained.data.manifest
    run.counts = np.where(np.arange(len(run.counts)) % 2, 100, 20)
    for row in (SuiteRow("plain"), SuiteRow("plain", score="odin", threshold=0, noise=0.0)):
        found = measure(row, run, {"closed": {"many": 0.5}, "shots": "released", "source": "x"})
        assert found.shots.medium == len(run.counts) and found.regrouped.shots.medium == 0
        assert found.regrouped.closed["many"] is not None and found.regrouped.open["few"] is not None
        assert measure(row, run, {}).regrouped is None


def test_the_threshold_of_a_tuned_score_may_meet_a_rate(trained, monkeypatch):
    monkeypatch.setattr(module, "tune_odin", partial(tune_odin, temperatures=(1.0,), noises=(0.0,)))
    run = TrainedRun(trained.part.out / "plain-0")
    run.manifest = trained.data.manifest
    found = measure(SuiteRow("plain", score="odin", unknown_rate=0.2, tune="open"), run).open
    # At T = 1 and ε = 0 it is the softmax.
    assert found.threshold == run.other_rule("softmax", unknown_rate=0.2).threshold
    assert found.unknown_rate == 0.2
