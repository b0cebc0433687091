"""`oltr suite`: the table and its files, the plan, and what is refused before any work."""

from __future__ import annotations

import json

import pytest

from oltr.suites import processes, train
from tests.helpers import pretended
from tests.helpers.tiny import SMALL_STEPS
from tests.helpers.training import stop_at

ROWS = """
about: tiny
recipe: glyphs
source: oltr data curate tiny
rows:
  - {method: plain}
  - {method: class-aware}
  - {method: class-aware, label: by rate, unknown_rate: 0.2}
"""
BROKEN = "  - {method: plain, label: broken, changes: [stage2.lr=1e30, stage2.classifier_lr=1e30]}\n"
QUICK = ["--epochs", "1", "1", "--cpu"]
for change in ("backbone=test_resnet", "stage1.batch_size=8", "stage2.batch_size=8", *SMALL_STEPS):
    QUICK += ["--set", change]


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """`oltr train` in this process."""
    monkeypatch.setattr(train, "CommandProcess", pretended.Here)


@pytest.fixture
def tiny(tmp_path):
    """The suite as a file."""
    (tmp_path / "tiny.yaml").write_text(ROWS, encoding="utf-8")
    return tmp_path / "tiny.yaml"


def test_the_table_and_its_files(oltr, pack, tiny, tmp_path):
    out = tmp_path / "out"
    said = oltr("suite", tiny, "--source", pack, *QUICK, "--out", out)
    assert said.code == 0, said.err
    assert "\nplain " in said.out and "\nclass-aware " in said.out and "\nby rate " in said.out
    for note in ("A quick look: --epochs 1 1", "Changed in every run: backbone=test_resnet"):
        assert note in said.out
    assert said.err.count("stage 1: ") == 1 and "about 0:0" in said.err
    assert "run 2 of 2: class-aware, seed 0, stage 1 from plain-0" in said.err
    held = json.loads((out / "suite.json").read_text())
    assert len(held["data"]["fingerprint"]) == 64 and held["versions"]["torch"] and held["hardware"]
    assert [entry["run"] for entry in held["runs"]] == ["plain-0", "class-aware-0"]
    kept = json.loads((out / "plain-0" / "report.json").read_text())
    assert held["rows"][0]["seeds"]["0"]["closed"] == kept["closed"]
    assert "| plain |" in (out / "table.md").read_text() and "by rate" in (out / "table.csv").read_text()
    assert "table.md, table.csv, suite.json, bars.svg, bars.png\n" in said.err
    assert (out / "bars.svg").is_file() and (out / "bars.png").is_file()
    assert not list(out.rglob("*.part"))

    words = ("suite", tiny, "--source", pack, *QUICK, "--out", out)
    again = oltr(*words, "--json")
    assert json.loads(again.out)["rows"] == held["rows"] and "stage" not in again.err
    more = oltr(*words, "--seeds", "2", "--dry-run")
    assert "finished, stage 1 from plain-0" in more.out and "new, stage 1 from plain-1" in more.out
    oltr(*words, "--epochs", "2", "1").refused("stage1.epochs: 1 → 2")


def test_a_failing_run_ends_with_exit_code_1_and_a_list(oltr, pack, tiny, tmp_path):
    tiny.write_text(ROWS + BROKEN)
    said = oltr("suite", tiny, "--source", pack, *QUICK, "--out", tmp_path / "out", "--methods", "plain")
    assert said.code == 1 and "Traceback" not in said.err
    assert "\nbroken (failed)" in said.out and "broken, seed 0, failed: " in said.out
    assert "warning: failed: broken, seed 0" in said.err
    assert "\nplain " in said.out and "class-aware" not in said.out
    assert "broken (failed)" in (tmp_path / "out" / "table.md").read_text()


def test_a_run_is_a_process_of_its_own(oltr, pack, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "CommandProcess", processes.CommandProcess)
    words = ("suite", tiny, "--source", pack, *QUICK, "--methods", "plain")
    said = oltr(*words, "--out", tmp_path / "out")
    assert said.code == 0 and said.out.startswith("tiny: tiny\n") and said.out.count("Percent") == 1
    assert "stage 1: 1 epoch of" in said.err and "run 1 of 1: plain, seed 0, finished" in said.err
    monkeypatch.setattr(train, "CommandProcess", pretended.Here)
    oltr(*words, "--out", tmp_path / "here")
    held, again = (json.loads((tmp_path / out / "suite.json").read_text()) for out in ("out", "here"))
    for part in ("closed", "open"):
        assert held["rows"][0]["seeds"]["0"][part] == again["rows"][0]["seeds"]["0"][part]


def test_ctrl_c_keeps_the_table_so_far(oltr, pack, tiny, tmp_path, monkeypatch):
    stop_at(monkeypatch, 20)
    said = oltr("suite", tiny, "--source", pack, *QUICK, "--out", tmp_path / "out")
    assert said.code == 130 and said.out == "" and "the same command goes on" in said.err
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| plain |" in table and "| class-aware (not yet) |" in table


def test_glyphs_are_drawn_on_the_spot(oltr, few_glyphs, tmp_path):
    out = tmp_path / "out"
    said = oltr("suite", "glyphs", *QUICK, "--out", out, "--methods", "plain", "--json")
    assert (out / "glyphs-0.pack").is_file() and (out / "glyphs.png").is_file()
    rows = json.loads(said.out)["rows"]
    assert rows[0]["label"] == "plain" and {row["method"] for row in rows} == {"plain"}
    assert rows[0]["mean"]["open.auroc"] is not None


def test_the_plan(oltr, tiny, tmp_path):
    said = oltr("suite", tiny, "--dry-run", "--seeds", "2", "--out", tmp_path / "out", "--json")
    plan = json.loads(said.out)["runs"]
    assert [(entry["run"], entry["stage1_from"]) for entry in plan] == [
        ("plain-0", None), ("class-aware-0", "plain-0"), ("plain-1", None), ("class-aware-1", "plain-1"),
    ]  # fmt: skip
    assert all(entry["epochs"] == [18, 6] and entry["state"] == "new" for entry in plan)
    assert said.err == "" and not (tmp_path / "out").exists()
    shown = oltr("suite", tiny, "--dry-run", "--epochs", "8").out
    assert shown.startswith("plain-0            6 + 2 epochs, new, a stage 1 of its own\n")
    assert shown.endswith("2 runs, into runs/tiny\n")


def test_unequal_budgets_are_told(oltr, tiny):
    tiny.write_text(ROWS + "  - {method: plain, label: longer, changes: [stage2.epochs=7]}\n")
    said = oltr("suite", tiny, "--dry-run")
    assert "warning: Not all runs train equally long: 24 epochs for plain, class-aware; 25 epochs" in said.err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("imagenet-l", "did you mean imagenet-lt"),
        ("nowhere.yaml", "There is no file nowhere.yaml"),
        ("imagenet-lt", "oltr data curate imagenet-lt --root"),
        ("places-lt --source nowhere", "oltr data curate places-lt --root"),
        ("TINY --source nowhere", "oltr data curate tiny"),
        ("TINY --methods plan", "did you mean plain"),
        ("TINY --recipe glyps", "did you mean glyphs"),
        ("TINY --seeds 0", "--seeds 1 or more"),
        ("TINY --jobs 0", "--jobs 1 or more"),
        ("TINY --epochs 0", "trains nothing"),
        ("TINY --epochs 1", "too short for two stages"),
        ("TINY --epochs 2 0", "Stage 2 has 0 epochs"),
        ("TINY --set seed=3", "--seeds N"),
        ("TINY --set stage2=null", "class-aware needs a second stage"),
        ("TINY --epochs 1 2 3", "one number for the whole run"),
        ("TINY --set stage1.rate=1", "no setting"),
        ("TINY --methds plain", "did you mean --methods?"),
    ],
)
def test_bad_input(oltr, tiny, tmp_path, words, answer):
    out = tmp_path / "out"
    oltr("suite", *words.replace("TINY", str(tiny)).split(), "--out", out).refused(answer)
    assert not out.exists()


def test_a_suite_of_other_data_draws_no_glyphs(oltr, tiny, tmp_path):
    tiny.write_text(ROWS.replace("glyphs", "photos").replace("source: oltr data curate tiny\n", ""))
    oltr("suite", tiny, "--out", tmp_path / "out").refused("The suite tiny needs --source.")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("class-aware}", "class-awre}", "did you mean class-aware"),
        ("unknown_rate", "score: softmx, unknown_rate", "softmax"),
    ],
)
def test_a_typo_in_the_file(oltr, tiny, pack, tmp_path, old, new, answer):
    tiny.write_text(ROWS.replace(old, new))
    oltr("suite", tiny, "--source", pack, "--out", tmp_path / "out").refused(answer)
    assert not (tmp_path / "out").exists()
