"""Accuracy and F-measure against the imbalance of the training images, as in the paper's analysis of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oltr.errors import UserError
from oltr.figures.figure import RunFigure
from oltr.figures.sweep_curves import Curve
from oltr.runs.report import Report

MEASURES = ("overall", "f_measure")  # of the open part; shot groups hold other classes at every α


def longtail_curves(label: str, reports: Mapping[float, Mapping[int, Report]]) -> list[Curve]:
    """From α → seed → report: each measure at every α, NaN where a seed has no report there."""
    alphas = sorted(reports)
    seeds = tuple(sorted({seed for by_seed in reports.values() for seed in by_seed}))
    if not seeds:
        raise UserError(f"{label} has no finished run.")
    return [
        Curve(
            label,
            measure,
            np.array(alphas, dtype=np.float64),
            seeds,
            np.array([[_number(reports[alpha].get(seed), measure) for alpha in alphas] for seed in seeds]),
        )
        for measure in MEASURES
    ]


def _number(report: Report | None, measure: str) -> float:
    value = None if report is None or report.open is None else getattr(report.open, measure)
    return np.nan if value is None else float(value)


FIGURE = RunFigure(
    order=190,
    name="longtail-ness",
    title="Influence of class imbalance (longtail-ness)",
    paper="Fig. 8 (a)",
    caption="Accuracy as the training set becomes more imbalanced, one training for each point.",
    needs="separate training runs",
    draw=None,
    made_by="oltr suite sweep-longtail",
)
