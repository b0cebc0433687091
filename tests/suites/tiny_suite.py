"""A suite of a few rows on the tiny set, trained inside the test's process unless it says otherwise."""

from __future__ import annotations

from pathlib import Path

from oltr.data.sources import read_source
from oltr.suites.data import Data
from oltr.suites.measure import Results
from oltr.suites.run import Part, plan_runs
from oltr.suites.suite_file import load_suite
from oltr.suites.train import train_runs
from tests.helpers.tiny import SMALL_STEPS

ROWS = """
about: tiny
recipe: glyphs
rows:
  - {method: plain}
  - {method: class-aware}
  - {method: oltr}
  - {method: oltr, score: reachability, unknown_rate: 0.2}
"""
QUICK = ("backbone=test_resnet", "stage1.batch_size=8", "stage2.batch_size=8", *SMALL_STEPS)


class TinySuite:
    """A suite of `text` in a folder of its own."""

    def __init__(self, folder: Path, pack: Path, text: str = ROWS, changes: tuple[str, ...] = QUICK):
        folder.mkdir(exist_ok=True)
        (folder / "tiny.yaml").write_text(text, encoding="utf-8")
        suite = load_suite(str(folder / "tiny.yaml"))
        runs = plan_runs(suite, 1, epochs=(1, 1), changes=changes, out=folder / "out")
        self.part, self.data = Part(suite, runs, folder / "out"), Data(str(pack), read_source(pack))

    def results(self, jobs: int = 1) -> Results:
        """With all runs trained on a CPU."""
        results = Results(self.part, self.data.manifest)
        for run, failure in train_runs(self.part, self.data, jobs, cpu=True):
            if failure is None:
                results.add(run)
            else:
                results.fail(run, failure)
        return results


def numbers(results: Results) -> list[tuple]:
    return [(row.label, row.reports[0]["closed"], row.reports[0]["open"]) for row in results.rows]
