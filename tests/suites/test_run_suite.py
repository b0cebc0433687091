"""A suite from queue to rows: stage 1 trained once, nothing twice, and one failure stops nobody else."""

from __future__ import annotations

import dataclasses
import multiprocessing
import shutil
import threading
from functools import partial

import pytest

from oltr.console import Console
from oltr.data.sources import read_source
from oltr.errors import UserError
from oltr.runs.evaluate_run import cached_outputs, make_report
from oltr.runs.prepare_score import prepared_score
from oltr.runs.tune_odin import tune_odin
from oltr.suites import measure as suite_measure
from oltr.suites import run_suite as module
from oltr.suites.plan import plan_runs
from oltr.suites.processes import side_by_side
from oltr.suites.rows import in_a_line
from oltr.suites.run_suite import check_kept, run_suite
from oltr.suites.suite_file import SuiteRow, load_suite
from oltr.training.run_folder import RunFolder
from tests.helpers import pretended
from tests.helpers.tiny import SMALL_STEPS
from tests.helpers.training import stop_at

ROWS = """
about: tiny
recipe: glyphs
rows:
  - {method: plain}
  - {method: class-aware}
  - {method: oltr}
  - {method: oltr, score: reachability, unknown_rate: 0.2}
"""
BROKEN = "  - {method: oltr, label: broken, changes: [stage2.lr=1e30, stage2.classifier_lr=1e30]}\n"
QUICK = ("backbone=test_resnet", "stage1.batch_size=8", "stage2.batch_size=8", *SMALL_STEPS)


class Tiny:
    """A suite of `text` in a folder of its own."""

    def __init__(self, folder, pack, text=ROWS, seeds=1, changes=QUICK):
        folder.mkdir(exist_ok=True)
        (folder / "tiny.yaml").write_text(text, encoding="utf-8")
        self.suite, self.out, self.pack = load_suite(str(folder / "tiny.yaml")), folder / "out", pack
        self.runs = plan_runs(self.suite, seeds, epochs=(1, 1), changes=changes)

    def results(self, **options):
        """The last of what `run_suite` gives."""
        manifest, console = read_source(self.pack), Console(quiet=True)
        given = run_suite(self.suite, self.runs, self.out, str(self.pack), manifest, console, **options)
        return list(given)[-1]


def numbers(results):
    return [(row.label, row.reports[0]["closed"], row.reports[0]["open"]) for row in results.rows]


@pytest.fixture(scope="module")
def whole(pack, tmp_path_factory):
    """A suite that went through without a stop; read-only."""
    tiny = Tiny(tmp_path_factory.mktemp("suite"), pack)
    return tiny, tiny.results(cpu=True)


def test_every_row_is_the_report_of_its_run(whole):
    tiny, results = whole
    assert results.failed() == []
    for row, (name, rule) in zip(
        results.rows,
        [("plain", ()), ("class-aware", ()), ("oltr", ()), ("oltr", ("reachability", None, 0.2))],
        strict=True,
    ):
        folder = RunFolder(tiny.out / f"{name}-0")
        assert row.reports[0].data == make_report(folder, cached_outputs(folder), *rule).data
    facts = results.facts()
    assert facts["versions"]["torch"] and "CPU" in facts["hardware"]
    assert [entry["run"] for entry in facts["runs"]] == ["plain-0", "class-aware-0", "oltr-0"]
    assert all(entry["finished"] and entry["epochs"] == 2 for entry in facts["runs"])
    assert all("hardware" not in entry for entry in facts["runs"])


def test_one_run_trains_stage_1_and_the_others_take_it(whole):
    tiny, _ = whole
    own = [RunFolder(tiny.out / run.name).stage_weights(1).is_file() for run in tiny.runs]
    assert own == [True, False, False]


def test_finished_runs_are_not_trained_again(whole, monkeypatch):
    tiny, results = whole
    monkeypatch.setattr(module, "train_one", lambda job: pytest.fail("trained again"))
    assert numbers(tiny.results(cpu=True)) == numbers(results)


def test_other_settings_or_data_in_the_same_folder_are_refused(whole, tmp_path):
    tiny, _ = whole
    manifest = read_source(tiny.pack)
    check_kept(tiny.runs, tiny.out, manifest)
    with pytest.raises(UserError, match=r"stage1\.momentum"):
        other = plan_runs(tiny.suite, 1, (1, 1), (*QUICK, "stage1.momentum=0.5"))
        check_kept(other, tiny.out, manifest)


@pytest.mark.parametrize("at", [3, 20])  # in stage 1, and in class-aware's stage 2
def test_interrupted_at_any_step_it_goes_on_to_the_same_rows(whole, pack, tmp_path, monkeypatch, at):
    steps = stop_at(monkeypatch, at)
    tiny = Tiny(tmp_path, pack, ROWS[: ROWS.index("  - {method: oltr")])
    with pytest.raises(KeyboardInterrupt):
        tiny.results(cpu=True)
    assert numbers(tiny.results(cpu=True)) == numbers(whole[1])[:2]
    # 8 steps an epoch: stage 1 once, stage 2 twice, and what was done again of the epoch that broke off.
    assert len(steps) == 3 * 8 + (at - 1) % 8 + 1


def test_a_failing_run_says_why_and_the_others_go_on(whole, pack, tmp_path):
    tiny = Tiny(tmp_path, pack, ROWS.replace("  - {method: oltr}\n", f"{BROKEN}  - {{method: oltr}}\n"))
    for name in ("plain-0", "class-aware-0"):
        shutil.copytree(whole[0].out / name, tiny.out / name)
    results = tiny.results(cpu=True)
    rows = {row.label: row for row in results.rows}
    assert list(rows["broken"].failures) == [0] and not rows["broken"].reports
    assert len(results.failed()) == 1 and results.failed()[0].startswith("broken, seed 0: ")
    assert rows["oltr"].reports[0]["closed"] == whole[1].rows[2].reports[0]["closed"]


def test_a_score_that_cannot_be_measured_leaves_the_other_rows(whole, pack, tmp_path):
    more = Tiny(tmp_path, pack, ROWS + "  - {method: plain, score: reachability, unknown_rate: 0.2}\n")
    more.out = whole[0].out
    results = more.results(cpu=True)
    assert [bool(row.reports) for row in results.rows] == [True, True, True, True, False]
    assert "memory" in results.failed()[0] and "\n" not in results.failed()[0]


@pytest.mark.parametrize("validation", [True, False])
def test_a_tuned_score_is_not_measured_on_images_it_was_tuned_by(whole, pack, monkeypatch, validation):
    few = partial(tune_odin, temperatures=(1.0, 1000.0), noises=(0.0, 0.002))
    monkeypatch.setattr(suite_measure, "tune_odin", few)
    folder, manifest, quiet = RunFolder(whole[0].out / "plain-0"), read_source(pack), Console(quiet=True)
    if not validation:  # a pack is read by row, so the rows stay
        splits = manifest.table["split"].replace({"val": "train"})
        manifest = dataclasses.replace(manifest, table=manifest.table.assign(split=splits))
    outputs = {split: part for split, part in cached_outputs(folder).items() if validation or split != "val"}
    row = SuiteRow("plain", score="odin", threshold=0, tune="open")
    found = suite_measure.measured(row, folder, outputs, manifest, quiet)["open"]

    known, lent = suite_measure._with_validation(manifest)
    best = few(folder, known, quiet)
    assert (len(best.held_out), len(lent)) == ((6, 0) if validation else (6, 12))
    assert known.sizes()["val"] == (18 if validation else 12)
    assert f"6 open images{'' if validation else ' and 12 test images'}, which are left out" in found["tuned"]
    said = prepared_score(folder, best.score, outputs, manifest, quiet).outputs
    sides = []
    for split, seen in (("test", lent), ("open", best.held_out)):
        values = best.score.unknown_score(said[split]).tolist()
        sides.append([value for number, value in enumerate(values) if number not in seen])
    assert [len(side) for side in sides] == [24 - len(lent), 6]
    wins = sum((u > k) + 0.5 * (u == k) for k in sides[0] for u in sides[1])
    assert found["auroc"] == pytest.approx(wins / (len(sides[0]) * 6), abs=1e-6)


def pretended_log(folder, pack, text, monkeypatch):
    """What runs said that were only pretended, two at a time; and the results."""
    monkeypatch.setattr(module, "train_one", pretended.pretend)
    tiny = Tiny(folder, pack, text)
    tiny.out.mkdir()
    results = tiny.results(jobs=2)
    return (tiny.out / "log.txt").read_text().splitlines(), results


def test_who_waits_for_whom_side_by_side(pack, tmp_path, monkeypatch):
    text = ROWS + "  - {method: class-aware, changes: [stage1.momentum=0.5]}\n"
    log, _ = pretended_log(tmp_path, pack, text, monkeypatch)
    alone = "class-aware+stage1.momentum=0.5-0"
    # The second place goes to the last run, which needs nobody; the two others wait for plain's stage 1 ...
    begun = [line for line in log if line.startswith("begins")]
    assert {*begun[:2]} == {"begins plain-0", f"begins {alone}"}
    assert {line for line in log if " from " in line} == {
        "begins class-aware-0 from plain-0",
        "begins oltr-0 from plain-0",
    }
    # ... and not for its stage 2.
    assert log.index("begins class-aware-0 from plain-0") < log.index("ends plain-0")
    assert len([line for line in log if line.startswith("ends")]) == 4


def test_a_run_whose_process_dies_hands_stage_1_on(pack, tmp_path, monkeypatch):
    dying = f"{{method: plain, changes: [stage2.momentum={pretended.DYING}]}}"
    log, results = pretended_log(tmp_path, pack, ROWS.replace("{method: plain}", dying), monkeypatch)
    assert "SIGKILL" in results.rows[0].failures[0]
    assert "begins class-aware-0" in log and "begins oltr-0 from class-aware-0" in log


def test_a_long_answer_does_not_get_stuck():
    going = side_by_side([300_000], 1, lambda letters, _: letters, pretended.say_much)
    found = []
    reading = threading.Thread(target=lambda: found.extend(going), daemon=True)
    reading.start()
    reading.join(30)
    for process in multiprocessing.active_children():
        process.kill()  # one that is stuck would outlive the test
    assert [(run, len(why)) for run, why in found] == [(300_000, 300_000)]


@pytest.mark.parametrize(("kind", "start"), [(UserError, "word word"), (ValueError, "ValueError: word")])
def test_a_failure_fits_into_a_line_of_the_table(kind, start):
    said = in_a_line(kind("word\n" * 9999))
    assert said.startswith(start) and "\n" not in said and len(said) < 450 and said.endswith("…")
    assert in_a_line(kind("word\nword")).endswith("word word")


def test_processes_end_with_an_interruption(tmp_path):
    marks = [str(tmp_path / name) for name in ("a", "b", "no folder/c")]
    going = side_by_side(marks, 3, lambda mark, _: mark, pretended.never_ends)
    assert next(going) == (marks[2], "its process ended with exit code 1")
    for mark in marks[:2]:
        pretended.wait_for(tmp_path / mark)
    going.close()
    assert all((tmp_path / f"{name}.stopped").exists() for name in "ab")
