"""Suites as files, and the runs that come of them: names, budgets, shared stages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from oltr.errors import UserError
from oltr.recipes import load_recipe
from oltr.suites.check import check_folder, check_rows, measurable
from oltr.suites.run import Part, plan_runs, unequal_epochs
from oltr.suites.suite_file import PAPER_COLUMNS, load_suite, select_rows, suite_names
from oltr.training.run_folder import RunFolder
from tests.helpers.tiny import tiny_manifest

SMALL = """
about: small
recipe: glyphs
rows:
  - {method: plain}
  - {method: class-aware}
  - {method: oltr}
  - {method: oltr, score: reachability, unknown_rate: 0.1}
  - {method: oltr, label: no memory, changes: [settings.memory=false]}
"""
BASELINES = ["plain", "class-aware", "cost-sensitive", "lifted", "focal", "range", "fslwf"]
LATER = ["crt", "tau-norm", "lws", "ldam-drw", "balanced-softmax", "experts"]
ALL_METHODS = [*BASELINES, "model-regression", "metamodelnet", *LATER, "oltr", "oltr-paper", "oltr2"]


def suite(folder, text=SMALL):
    (folder / "small.yaml").write_text(text, encoding="utf-8")
    return load_suite(str(folder / "small.yaml"))


def test_a_file_is_filled_with_what_it_leaves_unsaid(tmp_path):
    small = suite(tmp_path, SMALL.replace("rows:", "unknown_rate: 0.05\nrows:"))
    assert (small.name, small.columns, small.source) == ("small", PAPER_COLUMNS, None)
    labels = ["plain", "class-aware", "oltr", "oltr + reachability", "no memory"]
    assert [row.label for row in small.rows] == labels
    assert [row.unknown_rate for row in small.rows] == [0.05, 0.05, 0.05, 0.1, 0.05]
    # A published row is about the method as it is.
    assert [row.expect for row in small.rows] == ["plain", "class-aware", "oltr", None, None]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows:", "rws:", "did you mean rows"),
        ("method: plain", "methd: plain", "did you mean method"),
        ("no memory", "oltr", "several rows called 'oltr'"),
        (
            "recipe: glyphs",
            "recipe: glyphs\ncolumns: [overall]",
            "column in suite small.yaml called 'overall'",
        ),
        ("unknown_rate: 0.1", "unknown_rate: much", "unknown_rate is 'much'"),
        (SMALL[SMALL.index("rows:") :], "rows: []", "no rows"),
    ],
)
def test_a_wrong_file_is_one_message(tmp_path, old, new, message):
    with pytest.raises(UserError, match=f"(?s){message}"):
        suite(tmp_path, SMALL.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("method: class-aware", "method: class-awar", "(?s)no method called.*did you mean class-aware"),
        ("score: reachability", "score: reachabilty", "(?s)no score called.*did you mean reachability"),
        (
            "reachability, unknown_rate: 0.1",
            "odin, tune: open",
            r"Row 'oltr \+ odin' of .*: .*no default threshold",
        ),
        ("unknown_rate: 0.1", "unknown_rate: 5", "between 0 and 1"),
        ("unknown_rate: 0.1", "unknown_rate: 0.1, tune: open", "only odin can be tuned"),
        ("unknown_rate: 0.1", "unknown_rate: 0.1, noise: 0.002", "a noise is odin's"),
        (
            "reachability, unknown_rate: 0.1",
            "odin, threshold: 0, tune: open, noise: 0.1",
            "a noise is odin's",
        ),
        ("label: no memory", "expect: oltrs", "no published row"),
        ("settings.memory", "settings.memry", "did you mean memory"),
        ("settings.memory=false", "seed=5", "--seeds N"),
        ("method: oltr, score", "method: plain, score", "plain has no reachability"),
        (
            "label: no memory, changes: [settings.memory=false]",
            "score: reachability, unknown_rate: 0.1, changes: [settings.reachability=false]",
            "oltr has no reachability",
        ),
        ("recipe: glyphs", "recipe: glyps", "did you mean glyphs"),
    ],
)
def test_names_are_checked_before_any_work(tmp_path, old, new, message):
    with pytest.raises(UserError, match=message):
        wrong = suite(tmp_path, SMALL.replace(old, new))
        check_rows(wrong, plan_runs(wrong, 1))


def test_a_row_without_a_rule_takes_the_runs(tmp_path):
    small = suite(tmp_path, SMALL.replace(", unknown_rate: 0.1", ""))
    assert small.rows[3].unknown_rate is None and small.rows[3].threshold is None
    check_rows(small, plan_runs(small, 1))


def test_rows_of_some_methods(tmp_path):
    assert [row.label for row in select_rows(suite(tmp_path), ["no memory", "plain"]).rows] == [
        "plain",
        "no memory",
    ]
    assert (
        len(select_rows(suite(tmp_path), ["oltr"]).rows) == 3
        and len(select_rows(suite(tmp_path), []).rows) == 5
    )
    with pytest.raises(UserError, match="did you mean plain"):
        select_rows(suite(tmp_path), ["plan"])


def test_runs_are_told_apart_by_method_changes_and_seed(tmp_path, monkeypatch):
    runs = plan_runs(suite(tmp_path), seeds=2, changes=["stage1.lr=0.3"])
    names = ["plain", "class-aware", "oltr", "oltr+memory=false"]
    assert [run.name for run in runs] == [f"{name}-{seed}" for seed in (0, 1) for name in names]
    assert all(run.config.stage1.lr == 0.3 for run in runs)
    rows = suite(tmp_path).rows
    assert [sum(run.measures(row) for row in rows) for run in runs] == [1, 1, 2, 1] * 2
    assert runs[3].config.settings["memory"] is False
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b c").touch()
    odd = SMALL.replace("settings.memory=false", "weights=a/b c")
    assert plan_runs(suite(tmp_path, odd), 1)[3].name == "oltr+weights=a%2Fb%20c-0"


TAUGHT = """
about: taught
recipe: glyphs
rows:
  - {method: experts, label: "odd: three", changes: ["stage1.lr_milestones={1: 0.5}"]}
  - {method: experts, label: again, changes: ["stage1.lr_milestones={1: 0.5}"], score: energy}
  - {method: plain}
  - {method: plain, label: single, teacher: "odd: three", changes: [distill.share=0.7]}
  - {method: oltr, label: grandchild, teacher: single}
  - {method: oltr, label: the same, teacher: single, score: energy}
"""


def test_a_row_learns_from_the_run_of_another_row_and_the_same_seed(tmp_path):
    loaded = suite(tmp_path, TAUGHT)
    runs = plan_runs(loaded, seeds=2, out=tmp_path / "out")
    assert len(runs) == 8  # rows that differ in the score alone have one run
    for seed, (experts, plain, single, grandchild) in enumerate((runs[:4], runs[4:])):
        assert experts.teacher is None and plain.teacher is None and plain.config.distill.teacher is None
        assert single.teacher is experts and grandchild.teacher is single
        assert grandchild.lineage == [grandchild, single, experts]
        assert single.config.distill.teacher == str(tmp_path / "out" / experts.name)
        assert single.config.distill.share == 0.7 and single.config.seed == seed
        assert not single.shares_stage1(plain)
    assert len({run.name for run in runs}) == 8
    assert [sum(run.measures(row) for row in loaded.rows) for run in runs] == [2, 1, 1, 2] * 2
    # Teachers come along, one row of each.
    assert [row.label for row in select_rows(loaded, ["the same"]).rows] == ["again", "single", "the same"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("teacher: single", "teacher: singl"),
        ('teacher: "odd: three"', "teacher: grandchild"),  # below
        ("recipe: glyphs", "recipe: glyphs\nsweep: longtail\nalphas: [2]"),
    ],
)
def test_a_teacher_is_a_row_above(tmp_path, old, new):
    with pytest.raises(UserError, match=r"(?s)has the teacher .*a row above it"):
        suite(tmp_path, TAUGHT.replace(old, new))


def test_which_runs_share_a_stage_1(tmp_path):
    more = (
        "  - {method: class-aware, changes: [stage1.lr=0.2]}\n  - {method: oltr, changes: [stage2.lr=0.2]}\n"
    )
    runs = plan_runs(suite(tmp_path, SMALL + more), seeds=2)
    part = Part(suite(tmp_path), runs, tmp_path)
    trained_by = {run.name: other.name for run, other in part.stage1_runs().items()}
    for seed in "01":
        for name in ("plain", "class-aware", "oltr", "oltr+memory=false", "oltr+stage2.lr=0.2"):
            assert trained_by[f"{name}-{seed}"] == f"plain-{seed}"
        assert trained_by[f"class-aware+stage1.lr=0.2-{seed}"] == f"class-aware+stage1.lr=0.2-{seed}"
    done = RunFolder(tmp_path / "oltr-1").stage_weights(1)
    done.parent.mkdir(parents=True)
    done.touch()
    trained_by = {run.name: other.name for run, other in part.stage1_runs().items()}
    assert (trained_by["plain-0"], trained_by["plain-1"], trained_by["oltr-1"]) == (
        "plain-0",
        "oltr-1",
        "oltr-1",
    )


def test_a_stage_1_of_ones_own_depends_on_the_methods_settings(tmp_path):
    rows = "  - {method: focal}\n  - {method: focal, changes: [settings.gamma=5]}\n"
    runs = plan_runs(suite(tmp_path, SMALL + rows), 1)
    assert len({run.stage1_key for run in runs}) == 3
    none = plan_runs(suite(tmp_path), 1, epochs=(0, 3))
    assert {run.stage1_key for run in none} == {None}


def test_what_follows_training_alone_does_not_train_again(tmp_path):
    names = ("class_means=none", "memory=5", "contrast=1")
    rows = "".join(f"  - {{method: oltr2, changes: [settings.{name}]}}\n" for name in names)
    whole, *others = plan_runs(suite(tmp_path, SMALL + "  - {method: oltr2}\n" + rows), 1)[-4:]
    assert [whole.shares_stage1(other) for other in others] == [True, True, False]
    rows = "about: Heads\nrecipe: glyphs\nrows:\n  - {method: plain}\n"
    (head,) = plan_runs(suite(tmp_path, rows), 1, changes=["stage1.frozen=[backbone]", "stage2=null"])
    assert head.stage1_key is None


@pytest.mark.parametrize(
    ("epochs", "staged", "single"),
    [((), (18, 6), 24), ((8,), (6, 2), 8), ((2,), (1, 1), 2), ((3, 1), (3, 1), 4), ((24,), (18, 6), 24)],
)
def test_epochs_stay_equal(tmp_path, epochs, staged, single):
    rows = "  - {method: plain, label: one, changes: ['stage2=null', 'stage1.epochs=24']}\n"
    runs = {run.name: run for run in plan_runs(suite(tmp_path, SMALL + rows), 1, epochs)}
    one, oltr = runs["plain+stage2=null+stage1.epochs=24-0"], runs["oltr-0"]
    assert (oltr.config.stage1.epochs, oltr.config.stage2.epochs) == staged
    assert (one.config.num_stages, one.stage_epochs) == (1, [single])
    assert unequal_epochs(runs.values()) == ""


def test_unequal_epochs_are_told(tmp_path):
    runs = plan_runs(suite(tmp_path, SMALL.replace("settings.memory=false", "stage2.epochs=9")), 2)
    assert unequal_epochs(runs) == (
        "Not all runs train equally long: 24 epochs for plain, class-aware, oltr; "
        "27 epochs for oltr + stage2.epochs=9."
    )


@pytest.mark.parametrize(("seeds", "epochs"), [(0, ()), (1, (1, 2, 3)), (1, (-1, 2)), (1, (0, 0))])
def test_numbers_that_make_no_sense(tmp_path, seeds, epochs):
    with pytest.raises(UserError):
        plan_runs(suite(tmp_path), seeds, epochs)


def test_data_without_open_or_validation_images(tmp_path):
    small = suite(tmp_path)

    def data(**images):
        return SimpleNamespace(sizes=lambda: {"train": 9, "val": 0, "test": 9, "open": 0, **images})

    closed = measurable(small, data())
    assert [row.label for row in closed.rows] == ["plain", "class-aware", "oltr", "no memory"]
    assert all(row.unknown_rate is None for row in closed.rows)
    with pytest.raises(UserError, match="no validation images"):
        measurable(small, data(open=3))
    without_a_rate = suite(tmp_path, SMALL.replace(", unknown_rate: 0.1", ""))
    with pytest.raises(UserError, match="no validation images"):  # reachability has no default threshold
        measurable(without_a_rate, data(open=3))
    assert len(measurable(select_rows(without_a_rate, ["plain"]), data(open=3)).rows) == 1
    with pytest.raises(UserError, match="no open images"):
        measurable(select_rows(small, ["oltr + reachability"]), data())
    with pytest.raises(UserError, match="no test images"):
        measurable(small, data(test=0))


def test_the_suites_that_come_with_the_package():
    named = "ablation cifar100-lt cifar100-lt-modern glyphs imagenet-lt megaface oltr2-ablation "
    named += "oltr2-development open-detection photos places-lt sun-lt"
    sweeps = ["sweep-longtail", "sweep-open", "sweep-threshold"]
    assert suite_names() == [*named.split(), *sweeps]
    for name in suite_names():
        loaded = load_suite(name)
        expect = load_recipe(loaded.recipe).expect
        assert all(row.expect in expect for row in loaded.rows if row.expect not in (None, row.method))
        assert (loaded.source is None) == (loaded.recipe == "glyphs")
        assert (loaded.sweep is not None) == (name in sweeps)
        assert loaded.source is None or f"oltr suite {name} --source" in loaded.source


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_of_the_package_can_be_carried_out_and_is_fair(name):
    loaded = load_suite(name)
    runs = plan_runs(loaded, 1)
    check_rows(loaded, runs)
    assert unequal_epochs(runs) == ""


def test_the_papers_tables_have_their_rows():
    def published(name):
        loaded = load_suite(name)
        expect = load_recipe(loaded.recipe).expect
        return [(row.label, expect.get(row.expect or "", {})) for row in loaded.rows]

    main = ["plain", "lifted", "focal", "range", "range + openmax-textbook", "fslwf", "oltr"]
    for name in ("imagenet-lt", "places-lt"):
        ours = [label for label, row in published(name) if not row]
        assert ours == ["range + openmax"]  # the published row stands beside the textbook form
        assert [label for label, row in published(name) if row] == main
        assert all("f_measure_2019" in row["open"] for _, row in published(name) if row)
    assert [row["closed"]["overall"] for _, row in published("sun-lt")] == [0.48, 0.524, 0.547, 0.573, 0.587]
    errors = [row.get("open", {}).get("detection_error") for _, row in published("open-detection")]
    assert {"plain", "range", "oltr"} <= {row.method for row in load_suite("sweep-threshold").rows}  # Fig. 8b
    assert errors == [0.436, None, None, 0.246, 0.299, 0.18]
    fixed = load_suite("open-detection").rows[2]
    assert fixed.noise == 0.002 and published("open-detection")[2][1]["open"]["fpr95_known"] == 0.57
    for name in ("glyphs", "cifar100-lt", "cifar100-lt-modern"):
        assert [
            row.method for row in load_suite(name).rows if not row.score and not row.changes
        ] == ALL_METHODS


def test_a_run_without_outputs_is_evaluated_again(tmp_path):
    part = Part(suite(tmp_path), plan_runs(suite(tmp_path), 1), tmp_path)
    run = part.runs[0]
    folder = part.folder(run)
    folder.path.mkdir()
    values = {"config": {}, "data": {}, "finished": True, "train_seconds": 1.0}
    (folder.path / "run.yaml").write_text(yaml.safe_dump(values))
    folder.report.write_text("{}")
    assert not part.finished(run)
    folder.outputs.mkdir()
    (folder.outputs / "test.safetensors").write_bytes(b"")
    assert part.finished(run)


@pytest.mark.parametrize(
    ("name", "message"),
    [("plain-0/other.txt", "It is not empty"), ("plain-0", "is a file"), ("table.md", "no suite wrote")],
)
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path, name, message):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(UserError, match=message):
        small = suite(tmp_path)
        check_folder(Part(small, plan_runs(small, 1), tmp_path / "out"), tiny_manifest(tmp_path / "data"))
    assert path.read_text() == "mine"
