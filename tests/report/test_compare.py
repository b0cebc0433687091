from pathlib import Path

import pytest

from oltr.errors import UserError
from oltr.report.compare import load_reports
from tests.report.sample import sample_report


def run(folder: Path, method="oltr") -> Path:
    sample_report(method).save(folder / "report.json")
    (folder / "run.yaml").touch()
    return folder


def test_names_are_folder_names_made_unique_by_parents(tmp_path):
    folders = [run(tmp_path / name) for name in ("x/seed 1/oltr", "y/seed 1/oltr", "y/plain", "oltr")]
    assert list(load_reports(folders)) == ["x/seed 1/oltr", "y/seed 1/oltr", "plain", f"{tmp_path.name}/oltr"]


def test_keeps_the_order_and_drops_the_same_folder(tmp_path, monkeypatch):
    for name in ("b", "a"):
        run(tmp_path / name, method=name)
    monkeypatch.chdir(tmp_path / "b")
    reports = load_reports([".", "../a", tmp_path / "b"])
    assert {name: report["method"] for name, report in reports.items()} == {"b": "b", "a": "a"}
    assert list(reports) == ["b", "a"]


def test_what_is_no_run(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.yaml").touch()
    run(tmp_path / "demo" / "plain")
    for name, message in [
        ("none", "There is no run folder"), ("empty", "is not a run folder"), ("file", "is not a run folder"),
        ("damaged", "run.yaml is not whole"), ("demo", r"runs inside it: \S+demo.plain"),
    ]:  # fmt: skip
        with pytest.raises(UserError, match=message):
            load_reports([tmp_path / name])
    with pytest.raises(UserError, match="No run folder was given"):
        load_reports([])


def test_broken_report(tmp_path):
    (run(tmp_path / "a") / "report.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        load_reports([tmp_path / "a"])
