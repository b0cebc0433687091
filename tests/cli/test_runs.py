"""`evaluate` and `compare` on good runs and on damaged ones; results alone on standard output."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from tests.cli.conftest import QUICK
from tests.helpers.tiny import tiny_pack

RESUME = "Try: the same oltr train command with --resume"


@pytest.fixture
def run(trained, tmp_path):
    """A run that may be spoilt."""
    return shutil.copytree(trained["oltr"], tmp_path / "run")


def damaged(run, name, content):
    """Without that file, or with other content in it."""
    (run / name).unlink()
    if content is not None:
        (run / name).write_bytes(content)


def test_evaluate_measures_under_the_runs_own_rule_and_writes_its_report(oltr, run):
    before = json.loads((run / "report.json").read_text())
    (run / "report.json").unlink()
    said = oltr("evaluate", run, "--json")
    assert said.code == 0 and said.err == "" and json.loads(said.out) == before
    assert json.loads((run / "report.json").read_text()) == before
    assert yaml.safe_load((run / "run.yaml").read_text())["decision"]["unknown_rate"] == 0.05


def test_another_rule_changes_the_run_only_with_keep(oltr, run, pack):
    kept = {name: (run / name).read_text() for name in ("run.yaml", "report.json")}
    other = ("evaluate", run, "--score", "reachability", "--unknown-rate", "0.2")
    after = json.loads(oltr(*other, "--json").out)
    assert after["open"]["score"] == "reachability" and after["open"]["unknown_rate"] == 0.2
    assert after["closed"] == json.loads(kept["report.json"])["closed"]
    assert "--keep changes it" in oltr(*other).err
    assert oltr("evaluate", run, "--shots", "released").code == 0
    assert kept == {name: (run / name).read_text() for name in kept}
    oltr(*other, "--keep", "--source", pack).refused("--keep and --source")
    assert json.loads(oltr(*other, "--keep", "--json").out) == after
    assert json.loads((run / "report.json").read_text()) == after
    decision = yaml.safe_load((run / "run.yaml").read_text())["decision"]
    assert (decision["score"], decision["unknown_rate"]) == ("reachability", 0.2)
    assert json.loads(oltr("evaluate", run, "--json").out) == after  # from now on every verb uses it


def test_evaluate_on_a_source_changes_nothing(oltr, run, pack):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    said = oltr("evaluate", run, "--source", pack, "--threshold", "0.3", "--json")
    assert said.code == 0 and json.loads(said.out)["open"]["threshold"] == 0.3
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_scores_that_read_images(oltr, run, pack, tmp_path):
    rate = ("--unknown-rate", "0.2", "--json")
    for name in ("knn", "mahalanobis", "vim", "openmax", "odin"):
        said = oltr("evaluate", run, "--score", name, *rate)
        assert said.code == 0 and json.loads(said.out)["open"]["score"] == name, said.err
        assert ("training images once" in said.err) == (name == "knn")  # the first that needs them
    kept = sorted(str(file.relative_to(run / "outputs")) for file in (run / "outputs").rglob("*.safetensors"))
    changed = [f"odin-T1000-e0.0014/{split}.safetensors" for split in ("open", "test", "val")]
    assert kept == sorted([*changed, *(f"{split}.safetensors" for split in ("open", "test", "train", "val"))])
    asked = json.loads(oltr("evaluate", run, "--score", "openmax", "--json").out)["open"]
    assert asked["unknown_rate"] == 0.05  # the run's


def test_scores_when_the_images_have_moved(oltr, run, pack, tmp_path):
    text = (run / "run.yaml").read_text()
    (run / "run.yaml").write_text(text.replace(f"source: {pack}", f"source: {tmp_path / 'gone.pack'}"))
    for name in ("knn", "odin"):
        asked = ("evaluate", run, "--score", name, "--unknown-rate", "0.2")
        oltr(*asked).refused("was trained on are needed", "gone.pack", "--source SOURCE")
        report = (run / "report.json").read_bytes()
        assert oltr(*asked, "--source", pack).code == 0
        assert (run / "report.json").read_bytes() == report
        assert oltr(*asked).code == 0  # its outputs are kept by now


def test_a_wrong_rule_is_refused_before_images_are_read(oltr, run):
    oltr("evaluate", run, "--score", "knn", "--threshold", "nan").refused("finite")
    oltr("evaluate", run, "--score", "vim", "--unknown-rate", "7").refused("between 0 and 1")
    assert not (run / "outputs" / "train.safetensors").exists()


def test_evaluate_shows_tables(oltr, run):
    said = oltr("evaluate", run, "--per-class", "3", "--markdown")
    assert said.out.count("|:--|") == 2 and "3 of 6 classes" in said.out
    assert "│" in oltr("evaluate", run).out


def test_compare(oltr, trained):
    said = oltr("compare", trained["plain"], trained["oltr"])
    assert said.code == 0 and said.err == "" and "plain" in said.out and "oltr" in said.out
    assert set(json.loads(oltr("compare", *trained.values(), "--json").out)) == {"plain", "oltr"}
    assert oltr("compare", *trained.values(), "--markdown").out.count("\n| ") == 3


def test_compare_nothing(oltr, trained, tmp_path, pack):
    oltr("compare").refused("No run folder was given")
    oltr("compare", tmp_path / "nowhere").refused("no run folder")
    oltr("compare", pack).refused("is not a run folder")
    oltr("compare", trained["oltr"].parent).refused("the runs inside it", str(trained["plain"]))


@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_not_a_run(oltr, verb, tmp_path, pack):
    for place in (tmp_path, pack, tmp_path / "nowhere"):
        oltr(verb, place).refused(str(place))


@pytest.mark.parametrize(
    ("name", "content", "answer"),
    [
        ("run.yaml", b"a: [", "run.yaml is not valid YAML"),
        ("run.yaml", b"", "run.yaml is not whole"),
        ("run.yaml", b"config: {}", "run.yaml is not whole"),
        ("run.yaml", None, "It has no run.yaml"),
        ("classes.json", b"{", "classes.json cannot be read"),
        ("classes.json", b"[1]", "classes.json cannot be read"),
        ("classes.json", b"[]", "classes.json cannot be read"),
        ("classes.json", None, "classes.json cannot be read"),
        ("outputs/test.safetensors", b"cut", "test.safetensors cannot be read"),
        ("outputs/test.safetensors", None, "has no outputs of test images"),
    ],
)
def test_evaluate_a_damaged_run(oltr, run, name, content, answer):
    damaged(run, name, content)
    report = (run / "report.json").read_bytes()
    oltr("evaluate", run).refused(answer)
    assert (run / "report.json").read_bytes() == report


@pytest.mark.parametrize(("content", "answer"), [(b"cut", "is not whole"), (None, "is missing")])
def test_evaluate_without_a_whole_model(oltr, run, pack, content, answer):
    damaged(run, "model.safetensors", content)
    oltr("evaluate", run, "--source", pack).refused("model.safetensors", answer, f"{RESUME}, which writes it")


@pytest.mark.parametrize("verb", [["compare"], ["report"], ["evaluate"], ["evaluate", "--source", "{pack}"]])
def test_an_interrupted_run_is_told_at_once_to_go_on(oltr, run, pack, verb):
    facts = yaml.safe_load((run / "run.yaml").read_text()) | {"finished": False}
    (run / "run.yaml").write_text(yaml.safe_dump(facts))
    for name in ("report.json", "model.safetensors"):
        (run / name).unlink()
    shutil.rmtree(run / "outputs")
    words = [word.format(pack=pack) for word in verb]
    oltr(words[0], run, *words[1:]).refused(f"{run} has not finished training", RESUME)


@pytest.mark.parametrize("content", [None, b"", b"cut"])
def test_resuming_a_finished_run_mends_its_outputs_and_its_model(oltr, run, pack, content):
    for name in ("outputs/test.safetensors", "outputs/val.safetensors", "model.safetensors"):
        damaged(run, name, content)
    for verb in ("evaluate", "report"):
        oltr(verb, run).refused(f"{RESUME}, which makes them anew")
    assert oltr("train", pack, *QUICK, "--method", "oltr", "--out", run, "--resume").code == 0
    assert oltr("evaluate", run).code == 0
    assert oltr("evaluate", run, "--source", pack).code == 0


def test_kept_outputs_that_training_does_not_make_are_made_anew_once_deleted(oltr, run):
    asked = ("evaluate", run, "--score", "knn", "--unknown-rate", "0.2")
    kept = run / "outputs" / "train.safetensors"
    kept.write_bytes(b"cut")
    oltr(*asked).refused("train.safetensors cannot be read", f"delete {kept}")
    kept.unlink()
    assert oltr(*asked).code == 0


def test_a_run_whose_data_had_no_test_images(oltr, run):
    facts = yaml.safe_load((run / "run.yaml").read_text())
    facts["data"]["images"]["test"] = 0
    (run / "run.yaml").write_text(yaml.safe_dump(facts))
    (run / "report.json").unlink()
    (run / "outputs" / "test.safetensors").unlink()
    for verb in ("evaluate", "compare", "report"):
        oltr(verb, run).refused("Its data had no test images", f"oltr evaluate {run} --source SOURCE")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 1}', '{"schema": 99}', None])
def test_compare_a_damaged_report(oltr, run, trained, content):
    (run / "report.json").unlink()
    if content is not None:
        (run / "report.json").write_text(content)
    oltr("compare", trained["plain"], run).refused(str(run), "oltr evaluate")
    assert oltr("evaluate", run).code == 0  # which mends it
    assert oltr("compare", trained["plain"], run).code == 0


def test_other_images_of_the_same_classes(oltr, run, tmp_path):
    other = tiny_pack(tmp_path / "other", seed=0)
    assert oltr("evaluate", run, "--source", other).code == 0


def test_listings(oltr):
    methods, recipes = oltr("methods"), oltr("recipes")
    assert methods.code == recipes.code == 0
    assert all(name in methods.out for name in ("plain", "class-aware", "oltr", "oltr-paper", "reachability"))
    assert all(name in recipes.out for name in ("photos", "glyphs", "imagenet-lt"))
    listed = json.loads(oltr("methods", "--json").out)
    assert set(listed) == {"methods", "scores"} and all(name in methods.out for name in listed["scores"])
    assert listed["scores"]["softmax"].items() >= {"higher_is_known": True, "threshold": 0.1}.items()
    assert listed["scores"]["openmax"]["year"] == 2016 and "Bendale" in methods.out
    needs = {name: score["needs"] for name, score in listed["scores"].items()}
    assert (needs["energy"], needs["knn"], needs["odin"]) == ("outputs", "training outputs", "images")
    assert "glyphs" in json.loads(oltr("recipes", "--json").out)
    assert "stage1" in oltr("recipes", "imagenet-lt").out


def test_doctor(oltr):
    said = oltr("doctor")
    assert said.code == 0 and "torch" in said.out and "all is there" in said.out
    facts = json.loads(oltr("doctor", "--json").out)
    assert facts["problems"] == [] and facts["cores"] >= 1


def test_a_rule_is_part_of_what_is_trained(oltr, pack, tmp_path):
    words = ("train", pack, *QUICK, "--method", "plain", "--out", tmp_path / "run")
    assert oltr(*words, "--threshold", "0.3").code == 0
    decision = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())["decision"]
    assert decision == {"score": "softmax", "threshold": 0.3, "unknown_rate": None}
    oltr(*words, "--score", "energy", "--resume").refused("another configuration", "decision.score")
    other = tmp_path / "other"
    oltr(*words[:-1], other, "--threshold", "0.3", "--unknown-rate", "0.1").refused("Both")
