"""The table of a suite: hand-computed means, published numbers and differences; its files."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import pytest

from oltr.suites.files import suite_csv, suite_json, write_suite
from oltr.suites.seeds import SeedRow
from oltr.suites.suite_file import PAPER_COLUMNS
from oltr.suites.table import shown_columns, suite_table
from tests.report.sample import sample_report

PUBLISHED = {
    "closed": {"few": 0.2, "overall": 0.5},
    "open": {"f_measure_2019": 0.6},
    "source": "Somebody 2019, Table 1",
}


def report(few, f_measure=0.5, **open_part):
    made = sample_report(open={"f_measure": f_measure, **open_part})
    return dataclasses.replace(made, closed=dataclasses.replace(made.closed, few=few))


def rows():
    """oltr over three seeds, with a published row; plain lacks a seed, range failed, focal is to come."""
    seeds = (0, 1, 2)
    oltr = SeedRow("oltr", "oltr", (), seeds, PUBLISHED)
    oltr.reports = {2: report(0.3, 0.4), 0: report(0.1, 0.5), 1: report(0.2, 0.6)}
    plain = SeedRow("plain", "plain", ("a=1",), seeds)
    plain.reports = {seed: report(0.25, score="knn", unknown_rate=0.05, threshold=2.0) for seed in (0, 1)}
    plain.failures = {2: "Loss is NaN."}
    failed = SeedRow("range", "range", (), seeds, failures=dict.fromkeys(seeds, "no memory"))
    return [oltr, plain, failed, SeedRow("focal", "focal", (), seeds)]


def test_mean_deviation_and_difference_by_hand():
    oltr, plain, failed, _ = rows()
    assert oltr.values("closed.few") == [0.1, 0.2, 0.3]
    assert oltr.mean("closed.few") == pytest.approx(0.2)
    assert oltr.deviation("closed.few") == pytest.approx(0.1)  # √((0.01 + 0 + 0.01) / 2)
    assert oltr.difference("closed.few") == pytest.approx(0.0)
    assert oltr.difference("open.f_measure_2019") == pytest.approx(0.55 - 0.6)
    assert oltr.difference("open.f_measure") is None and oltr.mean("closed.medium") is None
    assert plain.difference("closed.few") is None and failed.mean("closed.few") is None
    one = SeedRow("one", "oltr", (), (0,), reports={0: report(0.4)})
    assert one.mean("closed.few") == 0.4 and one.deviation("closed.few") is None


def test_the_table():
    columns = ("closed.medium", "closed.few", "closed.overall", "open.f_measure", "open.f_measure_2019")
    table = suite_table("", rows(), columns)
    assert list(table.groups) == [
        ("", ["method"]),
        ("closed", ["few", "overall"]),  # nobody has a medium class
        ("open", ["F", "F 2019"]),
    ]
    assert table.rows == [
        ["oltr", "20.0 ± 10.0", "52.5 ± 0.0", "0.500 ± 0.100", "0.550 ± 0.000"],
        ["  published", "20.0", "50.0", "–", "0.600"],
        ["  difference", "+0.0", "+2.5", "–", "-0.050"],
        ["plain (2 of 3 seeds)", "25.0 ± 0.0", "52.5 ± 0.0", "0.500 ± 0.000", "0.550 ± 0.000"],
        ["range (failed)", "–", "–", "–", "–"],
        ["focal (not yet)", "–", "–", "–", "–"],
    ]
    assert table.notes == [
        "Percent, mean over classes, mean ± deviation over seeds 0, 1, 2; F 2019: as printed in the paper.",
        "Open (oltr): score softmax, threshold 0.1.",
        "Open (plain): score knn, at most 5.0 % of known validation images rejected.",
        "Published (oltr): Somebody 2019, Table 1.",
        "plain, seed 2, failed: Loss is NaN.",
        *(f"range, seed {seed}, failed: no memory." for seed in (0, 1, 2)),
    ]


def test_a_score_that_the_label_names_is_not_told_again():
    rate = {"unknown_rate": 0.05, "threshold": 2.0}
    named = [
        SeedRow(f"plain + {score}", "plain", (), (0,), reports={0: report(0.1, score=score, **rate)})
        for score in ("knn", "vim")
    ]
    tuned = SeedRow("tuned", "plain", (), (0,), reports={0: report(0.1, score="odin", tuned="T = 10")})
    assert suite_table("", [*named, tuned], PAPER_COLUMNS).notes[1:] == [
        "Open (plain + knn, plain + vim): at most 5.0 % of known validation images rejected.",
        "Open (tuned): score odin, T = 10, threshold 0.1.",
    ]


def test_columns_that_nobody_has_are_left_out():
    closed = SeedRow("oltr", "oltr", (), (0,), reports={0: sample_report(with_open=False)})
    shown = shown_columns([closed], PAPER_COLUMNS)
    assert shown == ["closed.many", "closed.few", "closed.overall"]
    assert "Open" not in suite_table("", [closed], PAPER_COLUMNS).text()
    detection = ["open.detection_error", "open.detection_error_min"]
    both = SeedRow("odin", "plain", (), (0,), {"open": {"detection_error": 0.246}})
    both.reports[0] = report(0.1, detection_error=0.3, detection_error_min=0.25)
    table = suite_table("", [both], detection)
    assert table.rows == [
        ["odin", "30.0", "25.0"],
        ["  published", "24.6", "–"],
        ["  difference", "+5.4", "–"],
    ]


def test_the_difference_is_to_groups_as_the_published_row_counts_them():
    def counted(few):
        shots = {"many": 1, "medium": 0, "few": 1}
        closed = {"many": 0.6, "medium": None, "few": few}
        return {"rule": "released", "shots": shots, "closed": closed}

    published = {
        "closed": {"many": 0.65, "few": 0.2, "overall": 0.5},
        "shots": "released",
        "source": "Somebody",
    }
    row = SeedRow("oltr", "oltr", (), (0, 1), published)
    row.reports = {seed: sample_report(regrouped=counted(few)) for seed, few in ((0, 0.25), (1, 0.35))}
    assert row.mean("closed.few") == pytest.approx(0.3) == row.compared("closed.few")
    assert row.mean("closed.many") == 0.75 and row.compared("closed.many") == pytest.approx(0.6)
    assert row.difference("closed.many") == pytest.approx(-0.05)
    assert row.difference("closed.overall") == pytest.approx(0.025)
    table = suite_table("", [row], ("closed.many", "closed.overall"))
    assert [line[:2] for line in table.rows] == [
        ["oltr", "75.0 ± 0.0"],
        ["  groups ≥ 100 / ≤ 20", "60.0"],
        ["  published", "65.0"],
        ["  difference", "-5.0"],
    ]
    assert any("its shot groups ≥ 100 / ≤ 20, in the difference ours, too" in note for note in table.notes)
    (line,) = csv.DictReader(io.StringIO(suite_csv([row], ["closed.many"])))
    assert float(line["compared"]) - float(line["published"]) == pytest.approx(float(line["difference"]))
    assert suite_json([row], {})["rows"][0]["compared"]["closed.many"] == pytest.approx(0.6)


def test_before_the_first_run_has_ended_there_is_a_table_too():
    waiting = SeedRow("oltr", "oltr", (), (0,))
    assert suite_table("", [waiting], PAPER_COLUMNS).rows == [["oltr (not yet)", *["–"] * 10]]


def test_csv():
    found = list(csv.DictReader(io.StringIO(suite_csv(rows(), ["closed.few", "open.auroc"]))))
    assert [(line["label"], line["number"]) for line in found[:3]] == [
        ("oltr", "closed.few"), ("oltr", "open.auroc"), ("plain", "closed.few")]  # fmt: skip
    first = {name: float(found[0][name]) for name in ("mean", "deviation", "published", "difference")}
    assert first == pytest.approx({"mean": 0.2, "deviation": 0.1, "published": 0.2, "difference": 0.0})
    assert (found[2]["changes"], found[2]["seeds"], found[2]["published"]) == ("a=1", "2", "")


def test_json():
    held = suite_json(rows(), {"suite": "small"})
    oltr, plain = held["rows"][:2]
    assert held["suite"] == "small"
    assert oltr["mean"]["closed.few"] == pytest.approx(0.2) and "open.threshold" not in oltr["mean"]
    assert oltr["difference"].keys() == {"closed.few", "closed.overall", "open.f_measure_2019"}
    assert [oltr["seeds"][seed]["closed"]["few"] for seed in "012"] == [0.1, 0.2, 0.3]
    assert plain["failed"] == {"2": "Loss is NaN."} and list(plain["seeds"]) == ["0", "1"]


def test_the_files_are_written_whole(tmp_path):
    table = suite_table("small", rows(), PAPER_COLUMNS)
    held = write_suite(tmp_path / "out", table, rows(), PAPER_COLUMNS, {"suite": "small"})
    assert json.loads((tmp_path / "out" / "suite.json").read_text()) == held
    assert (tmp_path / "out" / "table.md").read_text() == table.markdown() + "\n"
    lines = (tmp_path / "out" / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 * len(shown_columns(rows(), PAPER_COLUMNS))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"table.md", "table.csv", "suite.json", "bars.svg", "bars.png"}
    assert (tmp_path / "out" / "bars.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "out" / "bars.svg").read_text()


def test_bars_are_those_of_the_table(tmp_path):
    table = suite_table("small", rows(), PAPER_COLUMNS)
    (tmp_path / "bars.png").write_bytes(b"mine")
    write_suite(tmp_path, table, rows()[2:], PAPER_COLUMNS, {"suite": "small"})
    assert (tmp_path / "bars.png").read_bytes() == b"mine"  # no suite drew it
    write_suite(tmp_path, table, rows(), PAPER_COLUMNS, {"suite": "small"})
    assert (tmp_path / "bars.png").read_bytes() != b"mine"
    write_suite(tmp_path, table, rows()[2:], PAPER_COLUMNS, {"suite": "small"})  # none of them is finished
    assert sorted(path.name for path in tmp_path.iterdir()) == ["suite.json", "table.csv", "table.md"]


def test_a_choice_that_differs_from_seed_to_seed_is_told_for_each():
    reports = {seed: report(0.1, score="odin", tuned=f"T = {10 + seed}") for seed in (0, 1)}
    row = SeedRow("tuned", "plain", (), (0, 1), reports=reports)
    note = suite_table("", [row], PAPER_COLUMNS).notes[1]
    assert "T = 10 (seed 0), T = 11 (seed 1)" in note
