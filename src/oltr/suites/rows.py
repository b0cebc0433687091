"""The rows of a suite, filled as its runs end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.recipes import load_recipe
from oltr.runs.evaluate_run import cached_outputs
from oltr.suites.measure import measured
from oltr.suites.plan import Run
from oltr.suites.seeds import SeedRow
from oltr.suites.suite_file import Suite, SuiteRow
from oltr.training.run_folder import RunFolder

LETTERS = 400  # of a failure; some name every file


class Results:
    """A suite's table so far: `rows`, one for each of the suite's, to which finished runs are added."""

    def __init__(self, suite: Suite, runs: Sequence[Run], out: Path, manifest: Manifest, console: Console):
        expect = load_recipe(suite.recipe).expect
        self.suite, self.runs, self.out = suite, runs, out
        self.manifest, self.console = manifest, console
        self.rows = [
            SeedRow(
                label=row.label,
                method=row.method,
                changes=row.changes,
                seeds=tuple(run.config.seed for run in runs if run.measures(row)),
                published=expect.get(row.expect or "", {}),
            )
            for row in suite.rows
        ]

    def add(self, run: Run) -> None:
        """Measure a finished run for every row that is about it."""
        folder = RunFolder(self.out / run.name)
        try:
            outputs = cached_outputs(folder)
        except UserError as problem:
            self.fail(run, in_a_line(problem))
            return
        for wanted, row in self._of(run):
            try:
                row.reports[run.config.seed] = measured(wanted, folder, outputs, self.manifest, self.console)
                row.failures.pop(run.config.seed, None)
            except Exception as problem:  # one score that fails leaves the other rows
                row.failures[run.config.seed] = in_a_line(problem)

    def fail(self, run: Run, why: str) -> None:
        """Note in its rows why a run has nothing."""
        for _, row in self._of(run):
            row.failures[run.config.seed] = why

    def failed(self) -> list[str]:
        """Each row and seed that failed, with the reason."""
        return [f"{row.label}, seed {seed}: {why}" for row in self.rows for seed, why in row.failures.items()]

    def facts(self) -> dict[str, Any]:
        """Machine and versions, and each run that has begun; where another machine was used, it says so."""
        common: dict[str, Any] = {"hardware": None, "versions": None}
        runs = []
        for run in self.runs:
            folder = RunFolder(self.out / run.name)
            if not (folder.path / "run.yaml").is_file():
                continue
            kept = folder.run()
            for key in common:
                common[key] = common[key] or kept.get(key)
            entry = {"run": run.name, "seed": run.config.seed, "epochs": run.epochs}
            entry |= {key: kept[key] for key in ("finished", "train_seconds")}
            runs.append(entry | {key: kept.get(key) for key in common if kept.get(key) != common[key]})
        return {**common, "runs": runs}

    def _of(self, run: Run) -> list[tuple[SuiteRow, SeedRow]]:
        pairs = zip(self.suite.rows, self.rows, strict=True)
        return [(wanted, row) for wanted, row in pairs if run.measures(wanted)]


def in_a_line(problem: BaseException) -> str:
    """A failure as a table's note has it."""
    text = " ".join(str(problem).split())
    if len(text) > LETTERS:
        text = f"{text[: LETTERS - 1]}…"
    return text if isinstance(problem, UserError) else f"{type(problem).__name__}: {text}"
