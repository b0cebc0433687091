import json

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.evaluation.report import Report
from tests.report.sample import sample_report


def test_round_trip(tmp_path):
    report = sample_report(names=("löwe", "山猫"))
    report.save(tmp_path / "runs" / "a" / "report.json")
    assert Report.load(tmp_path / "runs" / "a" / "report.json") == report
    assert [entry.name for entry in (tmp_path / "runs" / "a").iterdir()] == ["report.json"]


def test_json_has_numbers_or_null():
    report = sample_report(
        train_seconds=float("nan"),
        expect={"closed": {"many": np.float32(0.5), "few": float("inf"), "overall": torch.tensor(0.25)}},
    )
    data = json.loads(report.to_json())
    assert data["train_seconds"] is None
    assert data["expect"]["closed"] == {"many": 0.5, "few": None, "overall": 0.25}
    assert data == report.data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not whole JSON"),
        ("", "not whole JSON"),
        ("[]", "is not a report"),
        ('{"schema": 1}', "is not a report"),
        (sample_report(schema=99).to_json(), "schema 99"),
    ],
)
def test_broken_reports(tmp_path, text, message):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(UserError, match=message):
        Report.load(tmp_path / "report.json")


def test_missing_report(tmp_path):
    with pytest.raises(UserError, match="no report"):
        Report.load(tmp_path / "report.json")


def test_shows_itself_as_a_table():
    report = sample_report()
    assert repr(report) == report.table().text()
    assert report._repr_markdown_() == report.table().markdown()
