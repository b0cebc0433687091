"""The runs of a suite: stage 1 trained once, nothing twice, and one failure stops nobody else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from oltr.errors import UserError
from oltr.suites import processes, train
from oltr.suites.check import check_folder
from oltr.suites.measure import run_facts
from oltr.suites.run import Part, plan_runs
from tests.helpers import pretended
from tests.helpers.training import stop_at
from tests.suites.tiny_suite import QUICK, ROWS, TinySuite, numbers

BROKEN = "  - {method: oltr, label: broken, changes: [stage2.lr=1e30, stage2.classifier_lr=1e30]}\n"


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """`oltr train` in this process."""
    monkeypatch.setattr(train, "CommandProcess", pretended.Here)


@pytest.fixture(scope="module")
def whole(pack, tmp_path_factory):
    """A suite that was not interrupted; read-only."""
    tiny = TinySuite(tmp_path_factory.mktemp("suite"), pack)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "CommandProcess", pretended.Here)
        return tiny, tiny.results()


def test_one_run_trains_stage_1_and_the_others_share_it(whole):
    part = whole[0].part
    assert [part.stage1_finished(run) for run in part.runs] == [True, False, False]


def test_what_is_told_of_the_runs(whole):
    tiny, results = whole
    facts = run_facts([results], tiny.part.out)
    assert facts["versions"]["torch"] and "CPU" in facts["hardware"]
    assert [entry["run"] for entry in facts["runs"]] == ["plain-0", "class-aware-0", "oltr-0"]
    assert all(entry["finished"] and entry["epochs"] == 2 for entry in facts["runs"])
    assert all("hardware" not in entry for entry in facts["runs"])


def test_finished_runs_are_not_trained_again(whole, monkeypatch):
    monkeypatch.setattr(train, "CommandProcess", pretended.never)
    assert numbers(whole[0].results()) == numbers(whole[1])


def test_other_settings_or_data_in_the_same_folder_are_refused(whole):
    part, manifest = whole[0].part, whole[0].data.manifest
    check_folder(part, manifest)
    other = plan_runs(part.suite, 1, (1, 1), (*QUICK, "stage1.momentum=0.5"))
    with pytest.raises(UserError, match=r"stage1\.momentum"):
        check_folder(Part(part.suite, other, part.out), manifest)


@pytest.mark.parametrize("at", [3, 20])  # in stage 1, and in class-aware's stage 2
def test_interrupted_at_any_step_it_resumes_to_the_same_rows(whole, pack, tmp_path, monkeypatch, at):
    steps = stop_at(monkeypatch, at)
    tiny = TinySuite(tmp_path, pack, ROWS[: ROWS.index("  - {method: oltr")])
    with pytest.raises(KeyboardInterrupt):
        tiny.results()
    assert numbers(tiny.results()) == numbers(whole[1])[:2]
    # 8 steps an epoch: stage 1 once, stage 2 twice, and what was repeated of the interrupted epoch.
    assert len(steps) == 3 * 8 + (at - 1) % 8 + 1


def test_a_failing_run_says_why_and_the_others_are_trained(whole, pack, tmp_path):
    tiny = TinySuite(tmp_path, pack, ROWS.replace("  - {method: oltr}\n", f"{BROKEN}  - {{method: oltr}}\n"))
    for name in ("plain-0", "class-aware-0"):
        shutil.copytree(whole[0].part.out / name, tiny.part.out / name)
    results = tiny.results()
    rows = {row.label: row for row in results.rows}
    assert list(rows["broken"].failures) == [0] and not rows["broken"].reports
    assert len(results.failed()) == 1 and results.failed()[0].startswith("broken, seed 0: ")
    assert rows["oltr"].reports[0]["closed"] == whole[1].rows[2].reports[0]["closed"]


def pretended_log(folder, pack, text, monkeypatch):
    """What runs logged that were only pretended, two at a time; and the results."""
    monkeypatch.setattr(train, "CommandProcess", processes.CommandProcess)
    monkeypatch.setattr(processes, "PROGRAM", pretended.program("pretend"))
    tiny = TinySuite(folder, pack, text)
    tiny.part.out.mkdir()
    results = tiny.results(jobs=2)
    return (tiny.part.out / "log.txt").read_text().splitlines(), results


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


def test_a_run_waits_for_its_teacher(pack, tmp_path, monkeypatch):
    begun = []

    class Noted(pretended.Here):
        def __init__(self, words, side_by_side=1):
            begun.append(Path(words[words.index("--out") + 1]).name)
            super().__init__(words, side_by_side)

    monkeypatch.setattr(train, "CommandProcess", Noted)
    rows = "  - {method: class-aware}\n  - {method: plain, label: single, teacher: class-aware}\n"
    tiny = TinySuite(tmp_path, pack, ROWS[: ROWS.index("  -")] + rows)
    monkeypatch.setattr(Part, "started", lambda part, run: run.teacher is not None)  # else it would be first
    results = tiny.results(jobs=2)
    teacher, student = tiny.part.runs
    assert begun == [teacher.name, student.name]
    assert not results.failed() and len(results.rows[1].reports) == 1
    told = tiny.part.folder(student).run()["teacher"]
    assert told["weights_sha256"] == tiny.part.folder(teacher).weights_sha256()
    assert results.rows[1].changes == ("distill.teacher=class-aware",)
    check_folder(tiny.part, tiny.data.manifest)


def test_without_its_teacher_a_run_fails(pack, tmp_path):
    rows = f"{BROKEN}  - {{method: plain, teacher: broken}}\n"
    results = TinySuite(tmp_path, pack, ROWS[: ROWS.index("  -")] + rows).results(jobs=2)
    assert len(results.failed()) == 2
    assert "has not finished training" in results.failed()[1]


def test_if_a_process_is_killed_the_next_run_trains_stage_1(pack, tmp_path, monkeypatch):
    dying = f"{{method: plain, changes: [stage2.momentum={pretended.DYING}]}}"
    log, results = pretended_log(tmp_path, pack, ROWS.replace("{method: plain}", dying), monkeypatch)
    assert "SIGKILL" in results.rows[0].failures[0]
    assert "begins class-aware-0" in log and "begins oltr-0 from class-aware-0" in log
