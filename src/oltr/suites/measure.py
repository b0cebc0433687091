"""A row of a suite measured on one of its runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.runs.evaluate_run import make_report
from oltr.runs.outputs import Outputs
from oltr.runs.prepare_score import Prepared, prepared_score
from oltr.runs.report import Report
from oltr.runs.tune_odin import tune_odin
from oltr.suites.suite_file import SuiteRow
from oltr.training.run_folder import RunFolder

LENT = 1000  # test images that tuning may look at where there are no validation images, as ODIN's authors did


def measured(
    row: SuiteRow, folder: RunFolder, outputs: Mapping[str, Outputs], manifest: Manifest, console: Console
) -> Report:
    """The report of a finished run under the row's score and threshold; a tuned score is tuned first."""
    if row.tune is None:
        return make_report(
            folder, outputs, row.score, row.threshold, row.unknown_rate, manifest=manifest, console=console
        )
    known, lent = _with_validation(manifest)
    tuned = tune_odin(folder, known, console)
    ready = prepared_score(folder, tuned.score, outputs, manifest, console)

    def rest(every: Mapping[str, Outputs]) -> dict[str, Outputs]:
        """Images that were looked at are measured no more."""
        return {**tuned.rest(every), "test": _without(every["test"], lent)}

    read = Prepared(tuned.score, rest(ready.outputs))
    report = make_report(folder, rest(outputs), read, row.threshold, row.unknown_rate)
    chosen = f"T = {tuned.score.temperature:g}, ε = {tuned.score.noise:g}"
    seen = f"{len(tuned.held_out):,} open images" + (f" and {len(lent):,} test images" if len(lent) else "")
    report["open"]["tuned"] = f"{chosen} by {seen}, which are left out"
    return report


def _with_validation(manifest: Manifest) -> tuple[Manifest, np.ndarray]:
    """The manifest, some test images made validation images where it has none; and their numbers in test."""
    places = manifest.positions("test")
    if manifest.sizes()["val"]:
        return manifest, places[:0]
    lent = np.sort(np.random.default_rng(0).permutation(len(places))[: min(LENT, len(places) // 2)])
    split = manifest.table["split"].to_numpy(copy=True)
    split[places[lent]] = "val"
    return dataclasses.replace(manifest, table=manifest.table.assign(split=split)), lent


def _without(outputs: Outputs, numbers: np.ndarray) -> Outputs:
    kept = np.setdiff1d(np.arange(len(outputs)), numbers)
    values = {field.name: getattr(outputs, field.name) for field in dataclasses.fields(outputs)}
    return Outputs(**{name: value[kept] for name, value in values.items() if value is not None})
