"""`oltr add-class`, `remove-class`, `rename-class`, `history`, `undo` and `train --from`, as typed."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
import yaml

from oltr.cli.main import _guarded
from oltr.errors import UserError
from oltr.runs.trained_run import TrainedRun
from tests.cli.conftest import QUICK
from tests.helpers.pictures import class_folders
from tests.helpers.struck import NEVER, striking


@pytest.fixture(scope="module")
def trained_on_files(photos, tmp_path_factory) -> Path:
    """A run of plain on image files; read-only."""
    out = tmp_path_factory.mktemp("runs") / "plain"
    assert _guarded(["train", str(photos), *QUICK, "--method", "plain", "--out", str(out)]) == 0
    return out


@pytest.fixture
def run(trained_on_files, tmp_path) -> Path:
    return shutil.copytree(trained_on_files, tmp_path / "run")


@pytest.fixture(scope="module")
def lynx(tmp_path_factory) -> Path:
    return class_folders(tmp_path_factory.mktemp("new"), {"lynx": 5}, size=16) / "lynx"


def test_the_whole_walk(oltr, run, lynx):
    said = oltr("add-class", run, "lynx", lynx)
    assert said.code == 0 and "'lynx' learned from 5 images; 4 classes known" in said.out
    assert "An image is unknown when" in said.out
    assert oltr("rename-class", run, "lynx", "Lynx").code == 0
    assert oltr("remove-class", run, "cat").code == 0
    listed = oltr("history", run).out.splitlines()
    assert [line.split("  ")[-1] for line in listed] == [
        "added 'lynx' from 5 images",
        "renamed 'lynx' to 'Lynx'",
        "removed 'cat'",
    ]
    assert "undone: 3 removed 'cat'" in oltr("undo", run).out
    told = json.loads(oltr("history", run, "--json").out)
    assert [each["kind"] for each in told] == ["add", "rename", "remove", "undo"]
    assert told[2]["undone_by"] == 4 and len(told[0]["images"]) == 5


def test_another_folder_leaves_the_run_as_it_is(oltr, run, lynx, tmp_path):
    said = oltr("add-class", run, "lynx", lynx, "--out", tmp_path / "with lynx", "--json")
    told = json.loads(said.out)
    assert told["classes"] == 4 and told["images"] == 5 and not told["model"].endswith(".0")
    assert len(TrainedRun(run).class_names) == 3 and not (run / "history.sqlite").exists()
    assert TrainedRun(tmp_path / "with lynx").class_names[-1] == "lynx"
    oltr("add-class", run, "lynx", lynx, "--out", tmp_path / "with lynx").refused("not empty")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run", "with lynx"]


def test_bad_input_is_one_message(oltr, run, lynx, tmp_path):
    oltr("add-class", run, "cat", lynx).refused("knows a class 'cat' already", "--more")
    oltr("add-class", run, "lynx", tmp_path / "nowhere.jpg").refused("nowhere.jpg")
    oltr("remove-class", run, "catt").refused("There is no class called 'catt'", "did you mean cat?")
    oltr("rename-class", run, "cat", "dög").refused("already")
    oltr("undo", run).refused("nothing to undo")
    oltr("history", tmp_path).refused("not a run folder")
    assert oltr("history", run).out == "Nothing: the classes are those of its training.\n"


def test_rescore_lists_what_a_new_class_changed(oltr, run, lynx, tmp_path):
    table = tmp_path / "p.csv"
    assert oltr("predict", run, lynx, "--out", table).code == 0
    assert "nothing to judge again" in oltr("rescore", run, table).out
    oltr("add-class", run, "lynx", lynx)
    told = json.loads(oltr("rescore", run, table, "--json").out)
    assert told["changed"] and {change["after"] for change in told["changed"]} == {"lynx"}


def test_trained_anew_with_what_was_collected(oltr, run, lynx, tmp_path):
    oltr("add-class", run, "lynx", lynx)
    oltr("rename-class", run, "cat", "wild cat")
    said = oltr("train", "--from", run, "--out", tmp_path / "anew", "--cpu")
    assert said.code == 0 and "5 collected images: 4 classes" in said.err
    anew = TrainedRun(tmp_path / "anew")
    assert set(anew.class_names) == {"wild cat", "dög", "雪 豹", "lynx"}
    assert dict(zip(anew.class_names, anew.counts.tolist(), strict=True))["lynx"] == 5
    assert anew.config.method == "plain" and anew.manifest.sizes()["test"]
    oltr("train", "--from", run, "--method", "oltr").refused("--from takes source and settings from the run")
    oltr("train", "--from", run, "--dry-run").refused("--dry-run does not go together with --from")
    oltr("train", run, "--dry-run").refused("is a run, not a folder of images", "--from")
    oltr("train").refused("There is no SOURCE")


def test_trained_anew_with_new_classes_a_run_has_no_teacher(oltr, run, lynx, tmp_path):
    facts = yaml.safe_load((run / "run.yaml").read_text(encoding="utf-8"))
    facts["config"]["distill"] = {"teacher": str(run)}
    (run / "run.yaml").write_text(yaml.safe_dump(facts), encoding="utf-8")
    oltr("add-class", run, "lynx", lynx)
    said = oltr("train", "--from", run, "--out", tmp_path / "anew", "--cpu")
    assert said.code == 0 and "does not know the classes of now" in said.err
    assert TrainedRun(tmp_path / "anew").config.distill.teacher is None


def test_a_run_trained_anew_lives_on_without_the_old_one(oltr, run, lynx, tmp_path):
    oltr("add-class", run, "lynx", lynx)
    words = ("train", "--from", run, "--out", tmp_path / "anew", "--cpu")
    said = oltr(*words)
    shutil.rmtree(run)
    assert oltr(*words, "--resume").out == said.out  # as it was begun
    oltr(*words, "--resume", "--seed", 3).refused("another configuration")
    moved = (tmp_path / "anew").rename(tmp_path / "moved")
    opened = TrainedRun(moved)
    assert all(path.is_file() for path in opened.manifest.paths("train"))
    lynxes = opened.manifest.rows("train").query("label == 'lynx'")["path"]
    assert len(lynxes) == 5 and all(path.startswith(f"{moved}/collected/") for path in lynxes)
    new = class_folders(tmp_path / "new", {"fox": 3}, size=16) / "fox"
    assert oltr("add-class", moved, "fox", new).code == 0
    assert oltr("train", "--from", moved, "--out", tmp_path / "third", "--cpu").code == 0
    shutil.rmtree(moved)
    third = TrainedRun(tmp_path / "third")
    assert all(path.is_file() for path in third.manifest.paths("train"))
    assert third.counts[third.class_names.index("lynx")] == 5
    assert third.counts[third.class_names.index("fox")] == 3


def test_training_anew_that_comes_to_nothing_leaves_nothing(oltr, run, lynx, tmp_path, monkeypatch):
    oltr("add-class", run, "lynx", lynx)
    with monkeypatch.context() as patch:
        patch.setattr("oltr.runs.train_run.train", lambda *_: (_ for _ in ()).throw(UserError("stopped")))
        oltr("train", "--from", run, "--out", tmp_path / "anew", "--cpu").refused("stopped")
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
    (tmp_path / "anew" / "collected").mkdir(parents=True)  # of a killed one
    (tmp_path / "anew" / "collected" / "left.png").touch()
    assert oltr("train", "--from", run, "--out", tmp_path / "anew", "--cpu").code == 0
    assert not (tmp_path / "anew" / "collected" / "left.png").exists()


def test_a_pack_cannot_be_joined_with_files(oltr, trained, lynx, tmp_path):
    run = shutil.copytree(trained["plain"], tmp_path / "run")
    oltr("add-class", run, "lynx", lynx)
    oltr("train", "--from", run, "--out", tmp_path / "anew").refused("was trained on a pack")


@pytest.fixture(scope="module")
def strike():
    with striking(["oltr/openworld", "oltr/files.py", "runs/history", "runs/stale_report"]) as strike:
        yield strike


def killed(strike, run: Path, lynx: Path, at: int) -> None:
    """An add-class killed at that call has added the class wholly or not at all, and can be done again."""
    words = ["add-class", str(run), "lynx", str(lynx)]
    code, _ = strike(words, at)
    known = "lynx" in TrainedRun(run).class_names
    if code == 0:
        assert known  # acknowledged
    else:
        assert code == -signal.SIGKILL, at
    if (run / "history.sqlite").exists():
        with sqlite3.connect(run / "history.sqlite") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    if not known:
        assert strike(words, NEVER)[0] == 0
    opened = TrainedRun(run)
    assert opened.class_names[-1] == "lynx" and opened.counts[-1] == 5
    assert all((run / file).stat().st_size for file in opened.changes.added[0].files)


def test_killed_at_three_moments(strike, run, lynx, tmp_path):
    whole = strike(["add-class", str(shutil.copytree(run, tmp_path / "whole")), "lynx", str(lynx)], NEVER)
    assert whole[0] == 0 and whole[1] > 30
    for number, at in enumerate((whole[1] // 3, whole[1] - 12, whole[1] - 2)):
        killed(strike, Path(shutil.copytree(run, tmp_path / str(number))), lynx, at)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(20))
def test_killed_at_a_random_moment(strike, run, lynx, tmp_path, number):
    whole = strike(["add-class", str(shutil.copytree(run, tmp_path / "whole")), "lynx", str(lynx)], NEVER)
    killed(strike, run, lynx, random.randint(1, whole[1]))
