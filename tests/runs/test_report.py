import json

import numpy as np
import pytest
import torch

from oltr.errors import UserError
from oltr.runs.report import Report
from tests.report.sample import sample_data, sample_report


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
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ("[]", "is not a complete report"),
        ('{"schema": 1}', "is not a complete report"),
        (json.dumps(sample_data(schema=99)), "schema 99"),
    ],
)
def test_broken_reports(tmp_path, text, message):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(UserError, match=message):
        Report.load(tmp_path / "report.json")


def without(*place):
    """A report that lacks one entry."""
    data = json.loads(sample_report().to_json())
    part = data
    for key in place[:-1]:
        part = part[key]
    del part[place[-1]]
    return data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (without("closed", "few"), "closed.few is missing"),
        (without("shots", "few"), "shots.few is missing"),
        (without("open", "threshold"), "open.threshold is missing"),
        (without("open", "score"), "open.score is missing"),
        (without("per_class", 0, "f1"), r"per_class[0].f1 is missing"),
        (without("per_class", 1), "as many entries as num_classes"),
        (sample_data(num_classes="two"), "num_classes must not be 'two'"),
        (sample_data(closed=[1, 2]), "closed must hold names"),
        (sample_data(open={"threshold": None}), "open.threshold must not be None"),
        (sample_data(open={"auroc": "high"}), "open.auroc must not be 'high'"),
        (sample_data(shots={"many": 1, "medium": 0, "few": None}), "shots.few must not be None"),
        (sample_data(per_class=[{"name": 3}, {}]), "per_class[0].name must not be 3"),
        (sample_data(per_class=[1, 2]), "per_class[0] must hold names"),
        ({**sample_data(), "open": [1]}, "open must hold names"),
    ],
)
def test_incomplete_reports(tmp_path, data, why):
    (tmp_path / "report.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match="not a complete report") as problem:
        Report.load(tmp_path / "report.json")
    assert why in problem.value.why and "oltr evaluate" in problem.value.try_this


def test_missing_report(tmp_path):
    with pytest.raises(UserError, match="no report"):
        Report.load(tmp_path / "report.json")


def test_shows_itself_as_a_table():
    report = sample_report()
    assert repr(report) == report.table().text()
    assert report._repr_markdown_() == report.table().markdown()
