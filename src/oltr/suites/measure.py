"""The rows of a suite, measured on its finished runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.openset import Odin, RejectionRule
from oltr.openset.threshold import settle_threshold
from oltr.recipes import load_recipe
from oltr.runs.evaluate import evaluate
from oltr.runs.outputs import OPEN, scored_by
from oltr.runs.report import Report
from oltr.runs.trained_run import TrainedRun
from oltr.runs.tune_odin import tune_odin
from oltr.suites.run import Part, Run
from oltr.suites.seeds import Numbers, SeedRow, one_line
from oltr.suites.suite_file import SuiteRow

# Test images that tuning may look at if there are no validation images, as ODIN's authors did.
BORROWED = 1000

Measure = Callable[[SuiteRow, TrainedRun, Mapping[str, Any]], Numbers]  # the last: the published row


class Results:
    """The table so far: `rows`, one for each row of the suite, filled from finished runs.

    `measured_by` is how: on the test and open images, unless given.
    """

    def __init__(self, part: Part, manifest: Manifest, measured_by: Measure | None = None):
        expect = load_recipe(part.suite.recipe).expect
        self.part, self.manifest, self.measure = part, manifest, measured_by or measure
        at = f", α = {part.alpha:g}" if part.alpha else ""
        self.rows = [
            SeedRow(
                label=row.label + at,
                method=row.method,
                changes=row.changes,
                seeds=tuple(run.config.seed for run in part.runs if run.measures(row)),
                published=expect.get(row.expect or "", {}),
            )
            for row in part.suite.rows
        ]
        for run in filter(part.finished, part.runs):
            self.add(run)

    def add(self, run: Run) -> None:
        """Measure every row of a finished run; one that cannot be measured leaves the others."""
        trained, seed = None, run.config.seed
        for wanted, row in self.of(run):
            try:
                trained = trained or self.open(run)
                row.reports[seed] = self.measure(wanted, trained, row.published)
                row.failures.pop(seed, None)
            except UserError as problem:
                row.failures[seed] = one_line(str(problem))
            except Exception as problem:
                row.failures[seed] = one_line(f"{type(problem).__name__}: {problem}")

    def fail(self, run: Run, why: str) -> None:
        """Note in the rows of a run why they have no numbers."""
        for _, row in self.of(run):
            row.failures[run.config.seed] = why

    def of(self, run: Run) -> list[tuple[SuiteRow, SeedRow]]:
        """The rows that are measured on a run, as the suite has them and as they are filled."""
        pairs = zip(self.part.suite.rows, self.rows, strict=True)
        return [(wanted, row) for wanted, row in pairs if run.measures(wanted)]

    def open(self, run: Run) -> TrainedRun:
        """A finished run, with the images where they are now."""
        trained = TrainedRun(self.part.out / run.name)
        trained.manifest = self.manifest
        return trained

    def failed(self) -> list[str]:
        """Each row and seed that failed, with the reason."""
        return [f"{row.label}, seed {seed}: {why}" for row in self.rows for seed, why in row.failures.items()]


def run_facts(results: Sequence[Results], base: Path) -> dict[str, Any]:
    """Machine, versions and each run that has started; a run on another machine says so."""
    common: dict[str, Any] = {"hardware": None, "versions": None}
    runs = []
    for part in (each.part for each in results):
        for run in part.runs:
            folder = part.folder(run)
            if not (folder.path / "run.yaml").is_file():
                continue
            facts = folder.run()
            common = {key: common[key] or facts.get(key) for key in common}
            entry = {"run": folder.path.relative_to(base).as_posix(), "seed": run.config.seed}
            entry |= {"epochs": sum(run.stage_epochs)}
            entry |= {key: facts[key] for key in ("finished", "train_seconds")}
            runs.append(entry | {key: facts.get(key) for key in common if facts.get(key) != common[key]})
    return {**common, "runs": runs}


def row_rule(row: SuiteRow, run: TrainedRun) -> RejectionRule:
    """What the row names of score, threshold and rate, else the run's own."""
    return run.other_rule(row.score, row.threshold, row.unknown_rate)


def measure(row: SuiteRow, run: TrainedRun, published: Mapping[str, Any] | None = None) -> Report:
    """The report of a finished run under the row's rejection rule; a tuned score is tuned first."""
    if row.tune or row.noise is not None:
        return _measure_odin(row, run, published)
    return run.under(row_rule(row, run)).measure(expect=published)


def _measure_odin(row: SuiteRow, run: TrainedRun, published: Mapping[str, Any] | None) -> Report:
    """With the row's noise, or tuned and without the images that it was tuned on."""
    score, chosen, used = _odin(row, run)
    every, read = run.outputs, run.own_outputs(score)
    kept = {split: np.setdiff1d(np.arange(len(every[split])), seen) for split, seen in used.items()}
    values = None
    if row.unknown_rate is not None:
        values = scored_by(score, read["val"]).values[every["val"].labels != OPEN]
    threshold = settle_threshold(score, values, row.threshold, row.unknown_rate)
    report = evaluate(
        {split: every[split].subset(rows) for split, rows in kept.items()},
        run.class_names,
        run.counts,
        RejectionRule(score.name, threshold, row.unknown_rate),
        {split: scored_by(score, read[split].subset(rows)) for split, rows in kept.items()},
        method=run.method,
        backbone=run.config.backbone,
        shots=run.shots,
        train_seconds=run.facts["train_seconds"],
        expect=published,
    )
    assert report.open is not None
    return dataclasses.replace(report, open=dataclasses.replace(report.open, tuned=chosen))


def _odin(row: SuiteRow, run: TrainedRun) -> tuple[Odin, str, dict[str, np.ndarray]]:
    """The score, how its numbers were chosen, and the images of each split that were looked at for it."""
    none = np.empty(0, dtype=np.int64)
    if row.noise is not None:
        score = Odin(noise=row.noise)
        return score, f"T = {score.temperature:g}, ε = {score.noise:g}", {"test": none, "open": none}
    known, borrowed = _with_validation(run.manifest)
    tuned = tune_odin(run, known)
    seen = f"{len(tuned.held_out):,} open images"
    seen += f" and {len(borrowed):,} test images" if len(borrowed) else ""
    chosen = f"T = {tuned.score.temperature:g}, ε = {tuned.score.noise:g} by {seen}, which are left out"
    return tuned.score, chosen, {"test": borrowed, "open": tuned.held_out}


def _with_validation(manifest: Manifest) -> tuple[Manifest, np.ndarray]:
    """The manifest, some test images made validation images if it has none; and their rows in test."""
    places = manifest.positions("test")
    if manifest.sizes()["val"]:
        return manifest, places[:0]
    borrowed = np.sort(np.random.default_rng(0).permutation(len(places))[: min(BORROWED, len(places) // 2)])
    split = manifest.table["split"].to_numpy(copy=True)
    split[places[borrowed]] = "val"
    return dataclasses.replace(manifest, table=manifest.table.assign(split=split)), borrowed
