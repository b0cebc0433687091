"""Curves over α from reports."""

from __future__ import annotations

import numpy as np
import pytest

from oltr.errors import UserError
from oltr.figures.longtail_sweep import longtail_curves
from tests.report.sample import sample_report


def report(accuracy, f):
    return sample_report(open={"overall": accuracy, "f_measure": f})


def test_each_report_at_its_alpha_and_seed():
    reports = {6.0: {0: report(0.8, 0.7), 2: report(0.6, 0.5)}, 1.0: {2: report(0.3, 0.2)}}
    accuracy, f = longtail_curves("oltr", reports)
    assert (accuracy.measure, f.measure, accuracy.label) == ("overall", "f_measure", "oltr")
    assert accuracy.at.tolist() == [1, 6] and accuracy.seeds == (0, 2)
    np.testing.assert_allclose(accuracy.values, [[np.nan, 0.8], [0.3, 0.6]])
    np.testing.assert_allclose(f.mean, [0.2, 0.6])


def test_reports_without_an_open_part_are_gaps():
    accuracy, _ = longtail_curves("plain", {2.0: {0: sample_report(with_open=False)}})
    assert np.isnan(accuracy.values).all()


def test_no_report_at_all():
    with pytest.raises(UserError, match="no finished run"):
        longtail_curves("plain", {2.0: {}})
