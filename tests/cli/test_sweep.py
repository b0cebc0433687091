"""`oltr suite sweep-...`: numbers, files, going on, and what is refused before any training."""

from __future__ import annotations

import csv
import json

import pytest
from safetensors.torch import load_file

from oltr.data.curate import glyphs
from oltr.data.curate.glyphs import make_glyphs
from oltr.data.manifest import Manifest
from oltr.data.pack import write_pack_from
from oltr.runs.trained_run import TrainedRun
from oltr.suites import train
from oltr.training.run_folder import RunFolder
from tests.cli.test_suite import QUICK
from tests.helpers import pretended
from tests.helpers.training import stop_at

FILES = {
    "table.md",
    "table.csv",
    "suite.json",
    "bars.svg",
    "bars.png",
    "sweep.md",
    "sweep.csv",
    "sweep.json",
    "sweep.svg",
    "sweep.png",
}
FEW = {"known": 6, "open_classes": 2, "val_per_class": 3, "test_per_class": 4, "open_per_class": 6}


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """`oltr train` in this process."""
    monkeypatch.setattr(train, "CommandProcess", pretended.Here)


def drawn(folder, **more):
    """Six known characters of 20 training images each, as a pack."""
    made = make_glyphs(**{**FEW, "largest": 20, "smallest": 20, **more})
    folder.mkdir(parents=True, exist_ok=True)
    return write_pack_from(Manifest.build(made.table, folder), made.images, 32, folder / "full.pack")


def written(folder):
    return {path.name for path in folder.iterdir() if path.is_file()}


def curves(folder):
    """(label, measure) → curve of sweep.json."""
    held = json.loads((folder / "sweep.json").read_text())
    return {(curve["label"], curve["measure"]): curve for curve in held["curves"]}


@pytest.fixture(scope="module")
def thresholds(pack, tmp_path_factory):
    """A finished sweep-threshold of two seeds; read-only."""
    from oltr.cli.main import _guarded

    out = tmp_path_factory.mktemp("sweep") / "out"
    words = ["suite", "sweep-threshold", "--source", pack, *QUICK, "--seeds", 2, "--out", out]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "CommandProcess", pretended.Here)
        assert _guarded([str(word) for word in words]) == 0
    return out, [str(word) for word in words]


def test_thresholds_are_those_of_reports(thresholds):
    out, _ = thresholds
    assert written(out) == FILES and not list(out.rglob("*.part"))
    found = curves(out)
    assert {label for label, _ in found} == {"plain", "class-aware", "range", "oltr"}
    for (label, measure), curve in found.items():
        assert len(curve["at"]) == 101 and list(curve["seeds"]) == ["0", "1"]
        for seed, values in curve["seeds"].items():
            run = TrainedRun(out / f"{label}-{seed}")
            for place in (0, 17, 30, 64):
                report = run.under(run.other_rule("softmax", threshold=place / 100)).measure()
                assert values[place] == pytest.approx(report["open"][measure])
        assert curve["mean"][30] == pytest.approx(sum(v[30] for v in curve["seeds"].values()) / 2)
    with (out / "sweep.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 101 * len(found)
    assert float(lines[30]["mean"]) == found[lines[30]["label"], lines[30]["measure"]]["mean"][30]


def test_finished_runs_serve_other_sweeps_and_keep_the_table(oltr, thresholds, monkeypatch):
    out, words = thresholds
    monkeypatch.setattr(train, "CommandProcess", pretended.never)
    table = (out / "table.md").read_bytes()
    again = oltr(*words)
    assert again.code == 0 and "8 of 8 runs were finished before" in again.err
    assert again.out.startswith("sweep-threshold: ") and "\nthreshold │ " in again.out

    said = oltr(*words[:1], "sweep-open", *words[2:], "--json")
    assert said.code == 0, said.err
    assert written(out / "sweep-open") == FILES and (out / "table.md").read_bytes() == table
    held = json.loads(said.out)
    assert [curve["at"] for curve in held["curves"]] == [[0.0, 1.0, 2.0]] * 3
    assert held["suite"] == "sweep-open" and held["versions"]["torch"] and len(held["runs"]) == 6
    assert "rejects at most 5.0 % of known" in (out / "sweep-open" / "sweep.md").read_text()
    for (label, measure), curve in curves(out / "sweep-open").items():
        report = TrainedRun(out / f"{label}-1").measure()  # at the rate of 5 %, as in the sweep
        assert curve["seeds"]["1"][-1] == pytest.approx(report["open"][measure])


def test_the_imbalance(oltr, tmp_path, monkeypatch):
    out, source = tmp_path / "out", drawn(tmp_path / "data")
    words = ["suite", "sweep-longtail", "--source", source, *QUICK, "--alphas", 4, 1, "--out", out]
    stop_at(monkeypatch, 22)  # in the first run on the backbone
    assert oltr(*words).code == 130
    kept = RunFolder(out / "backbone" / "plain-0")
    before = kept.model.stat().st_mtime_ns
    assert not (out / "alpha-1" / "plain-0" / "model.safetensors").exists()
    said = oltr(*words)
    assert said.code == 0 and kept.model.stat().st_mtime_ns == before, said.err
    assert written(out) == FILES
    found = curves(out)
    assert set(found) == {(label, m) for label in ("plain", "oltr") for m in ("overall", "f_measure")}
    backbone = load_file(kept.model)
    for (label, measure), curve in found.items():
        assert curve["at"] == [1.0, 4.0]
        for alpha, value in zip(("1", "4"), curve["mean"], strict=True):
            run = TrainedRun(out / f"alpha-{alpha}" / f"{label}-0")
            assert value == pytest.approx(run.measure()["open"][measure])
            weights = load_file(run.folder.model)
            shared = [name for name in backbone if name.startswith("backbone.")]
            assert shared and all((weights[name] == backbone[name]).all() for name in shared)
    held = json.loads((out / "suite.json").read_text())
    assert [row["label"] for row in held["rows"]][:2] == ["backbone, α = 4", "plain, α = 1"]
    assert held["runs"][1]["run"] == "alpha-1/plain-0" and held["sets"][0]["alpha"] == 1
    assert "| oltr, α = 4 |" in (out / "table.md").read_text()

    times = {path: path.stat().st_mtime_ns for path in out.glob("*/*/model.safetensors")}
    monkeypatch.setattr(train, "CommandProcess", pretended.never)
    assert oltr(*words).code == 0
    assert len(times) == 5 and all(path.stat().st_mtime_ns == time for path, time in times.items())
    other = drawn(tmp_path / "other", seed=1)
    oltr(*["suite", "sweep-longtail", "--source", other, *words[4:]]).refused("drawn from other data")


def test_glyphs_are_drawn_in_equal_numbers(oltr, tmp_path, monkeypatch):
    monkeypatch.setattr(
        glyphs,
        "make_glyphs",
        lambda **options: make_glyphs(**{**options, **FEW, "largest": 12, "smallest": 12}),
    )
    words = [
        "suite",
        "sweep-longtail",
        *QUICK,
        "--alphas",
        2,
        "--methods",
        "plain",
        "--out",
        tmp_path / "o",
    ]
    said = oltr(*words)
    assert said.code == 0, said.err
    assert (tmp_path / "o" / "glyphs-0-280-each.pack").is_file() and "\n2 │" in said.out


def test_a_backbone_that_fails_ends_the_sweep(oltr, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "CommandProcess", pretended.failing("no power"))
    out = tmp_path / "out"
    said = oltr("suite", "sweep-longtail", "--source", drawn(tmp_path / "data"), *QUICK, "--out", out)
    assert said.code == 1 and said.err.count("no power") == 2 and not (out / "sweep.json").exists()


@pytest.mark.parametrize("name", ["sweep-threshold", "sweep-open", "sweep-longtail"])
def test_without_open_images_nothing_is_trained(oltr, tmp_path, monkeypatch, name):
    monkeypatch.setattr(train, "CommandProcess", pretended.never)
    source = drawn(tmp_path / "data", open_classes=0)
    oltr("suite", name, "--source", source, *QUICK, "--out", tmp_path / "out").refused("no open images")
    assert not (tmp_path / "out").exists()


def test_without_validation_images_no_threshold_can_be_chosen(oltr, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "CommandProcess", pretended.never)
    # All that a class has is learned from: the largest α leaves nothing over.
    source = drawn(tmp_path / "data", val_per_class=0, largest=5, smallest=5)
    said = oltr("suite", "sweep-longtail", "--source", source, *QUICK, "--out", tmp_path / "out")
    said.refused("no validation images")
    assert not (tmp_path / "out").exists()


def test_open_images_without_names(oltr, tmp_path):
    source = drawn(tmp_path / "data", open_classes=1)
    said = oltr("suite", "sweep-open", "--source", source, *QUICK, "--out", tmp_path / "out")
    said.refused("1 class name", "name of its class")


def test_the_plan_of_every_alpha(oltr, tmp_path):
    said = oltr(
        "suite", "sweep-longtail", "--dry-run", "--json", "--out", tmp_path / "out", "--epochs", "4", "2"
    )
    plan = json.loads(said.out)["runs"]
    assert [entry["run"] for entry in plan][:3] == ["backbone/plain-0", "alpha-1/plain-0", "alpha-1/oltr-0"]
    assert len(plan) == 9 and plan[0]["epochs"] == [6] and plan[1]["epochs"] == [4, 2]
    assert plan[2]["stage1_from"] == "alpha-1/plain-0" and plan[1]["stage1_from"] is None
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("sweep-treshold", "did you mean sweep-threshold"),
        ("sweep-open --alphas 2 4", "has no --alphas"),
        ("sweep-longtail --alphas 0 --source PACK", "alpha is 0"),
        ("sweep-longtail --recipe imagenet-lt", "a whole set"),
        ("sweep-open --recipe imagenet-lt", "needs --source"),
        ("sweep-longtail --methods class-aware", "method in the suite"),
    ],
)
def test_bad_input(oltr, tmp_path, words, answer):
    if "PACK" in words:
        words = words.replace("PACK", str(drawn(tmp_path / "data")))
    oltr("suite", *words.split(), "--out", tmp_path / "out").refused(answer)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("alphas: [1, 2]", "alphas belong to sweep: longtail"),
        ("sweep: longtail", "alphas belong to sweep: longtail"),
        ("sweep: treshold", "threshold, open, longtail"),
        ("sweep: threshold", "cannot take its score"),
    ],
)
def test_a_file_that_makes_no_sense(oltr, tmp_path, line, answer):
    row = "{method: oltr, score: reachability, unknown_rate: 0.1}"
    (tmp_path / "mine.yaml").write_text(f"about: mine\nrecipe: glyphs\nrows: [{row}]\n{line}\n")
    oltr("suite", tmp_path / "mine.yaml", "--out", tmp_path / "out").refused(answer)


@pytest.mark.parametrize("alpha", ["0", "-1", "nan", "inf"])
def test_an_alpha_without_sense_is_refused_before_anything_is_drawn(oltr, tmp_path, alpha):
    out = tmp_path / "x"
    for words in (["--dry-run"], []):
        oltr("suite", "sweep-longtail", "--alphas", "1", alpha, "--out", out, *words).refused("alpha is")
    assert not out.exists()
