"""A sweep's table and files."""

from __future__ import annotations

import json

import numpy as np

from oltr.figures.sweep_curves import Curve
from oltr.suites.sweep import LINES, sweep_csv, sweep_table, write_sweep

AT = np.array([1.0, 2.5])
CURVES = [
    Curve("plain", "overall", AT, (0, 1), np.array([[0.1, 0.25], [0.3, np.nan]])),
    Curve("plain", "few", AT, (0, 1), np.array([[0.1, 0.2], [0.1, 0.2]])),
    Curve("plain", "f_measure", AT, (0, 1), np.array([[0.5, np.nan], [0.7, np.nan]])),
]


def test_the_table():
    table = sweep_table("title", "longtail", CURVES, ["a note"])
    assert list(table.groups) == [("", ["α"]), ("accuracy, overall (%)", ["plain"]), ("F-measure", ["plain"])]
    assert list(table.rows) == [["1", "20.0 ± 14.1", "0.600 ± 0.141"], ["2.5", "25.0", "–"]]
    assert "over seeds 0, 1" in table.notes[0] and table.notes[1] == "a note"


def test_a_long_sweep_shows_some_places():
    steps = np.linspace(0, 1, 101)
    table = sweep_table("", "threshold", [Curve("a", "overall", steps, (0,), steps[None])])
    assert len(table.rows) == LINES
    assert [row[0] for row in table.rows][:3] == ["0", "0.1", "0.2"] and table.rows[-1] == ["1", "100.0"]


def test_the_files(tmp_path):
    table = sweep_table("title", "longtail", CURVES)
    write_sweep(tmp_path, table, "longtail", CURVES, {"suite": "sweep-longtail"})
    names = {"sweep.md", "sweep.csv", "sweep.json", "sweep.svg", "sweep.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    held = json.loads((tmp_path / "sweep.json").read_text())
    assert held["suite"] == "sweep-longtail" and held["sweep"] == "longtail"
    first = held["curves"][0]
    assert first["at"] == [1.0, 2.5] and first["mean"] == [0.2, 0.25]
    assert first["seeds"] == {"0": [0.1, 0.25], "1": [0.3, None]} and first["deviation"][1] is None
    lines = (tmp_path / "sweep.csv").read_text().splitlines()
    assert lines[0] == "label,measure,at,seeds,mean,deviation"
    assert lines[2] == "plain,overall,2.5,1,0.25," and lines[-1] == "plain,f_measure,2.5,0,,"
    assert len(lines) == 7 and sweep_csv(CURVES).splitlines() == lines
