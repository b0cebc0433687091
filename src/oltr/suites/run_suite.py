"""A table of the paper, end to end: all its runs, one after the other or side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import torch

from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.runs.train_run import as_packed
from oltr.suites.job import Job
from oltr.suites.plan import Run, finished, stage1_givers
from oltr.suites.processes import side_by_side
from oltr.suites.rows import Results
from oltr.suites.suite_file import Suite
from oltr.suites.train_one import train_one
from oltr.training.run_folder import RunFolder


def check_kept(runs: Sequence[Run], out: Path, manifest: Manifest) -> None:
    """Refuse a folder that holds something else, or whose runs had other settings or other data."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file.", try_this="another --out")
    if (out / "table.md").exists() and not (out / "suite.json").exists():
        raise UserError(f"{out} holds a table.md that no suite wrote.", try_this="another --out")
    for run in runs:
        folder = RunFolder(out / run.name)
        if (folder.path / "run.yaml").is_file():
            folder.check_same(as_packed(run.config, manifest), manifest)
        else:
            folder.check_free()


def run_suite(
    suite: Suite,
    runs: Sequence[Run],
    out: Path,
    source: str,
    manifest: Manifest,
    console: Console,
    *,
    root: Path | None = None,
    jobs: int = 1,
    cpu: bool = False,
) -> Iterator[Results]:
    """Train what is not finished; the results so far, at the beginning and after every run."""
    results, waiting = Results(suite, runs, out, manifest, console), []
    for run in runs:
        if finished(run, out):
            results.add(run)
        else:
            waiting.append(run)
    waiting.sort(key=lambda run: not _under_way(run, out))  # what was begun is finished first
    if kept := len(runs) - len(waiting):
        console.say(f"{kept} of {len(runs)} runs were finished before")
    yield results
    clock = _Clock(runs, waiting, out, console)

    def job_of(run: Run, going: list[Run]) -> Job | None:
        giver = _giver(run, runs, out)
        if giver is None and not _under_way(run, out) and any(_same_stage1(run, other) for other in going):
            return None  # its stage 1 is being trained
        clock.started(run, giver)
        stage1_from = None if giver is None else out / giver.name
        return Job(run.config, source, root, out / run.name, stage1_from, cpu, jobs)

    # A GPU that one run leaves in a bad state would be lost to the others of its process.
    apart = jobs > 1 or (torch.cuda.is_available() and not cpu)
    ended: Iterator[tuple[Run, str | None]]
    if apart:
        ended = side_by_side(waiting, jobs, job_of, train_one)
    else:
        ended = ((run, train_one(job)) for run in waiting if (job := job_of(run, [])) is not None)
    for run, why in ended:
        if why is None:
            results.add(run)
        else:
            results.fail(run, why)
        clock.ended(run, why)
        yield results


def _same_stage1(one: Run, other: Run) -> bool:
    return one.first_stage is not None and one.first_stage == other.first_stage


def _under_way(run: Run, out: Path) -> bool:
    """Whether there is an epoch to go on from."""
    return RunFolder(out / run.name).last.is_file()


def _giver(run: Run, runs: Sequence[Run], out: Path) -> Run | None:
    """A run whose finished stage 1 can be taken; none for a run that is under way, which needs it no more."""
    if _under_way(run, out):
        return None
    others = (other for other in runs if other is not run and _same_stage1(run, other))
    return next((other for other in others if RunFolder(out / other.name).stage_weights(1).is_file()), None)


class _Clock:
    """Says which run began and ended, and how long the rest will take."""

    def __init__(self, runs: Sequence[Run], waiting: Sequence[Run], out: Path, console: Console):
        givers = stage1_givers(runs, out)
        self.runs, self.console, self.began = list(runs), console, time.monotonic()
        # In epochs; the start and the evaluation of a run count as one.
        self.cost = {
            run: 1 + run.epochs - (givers[run] is not run) * run.config.stage1.epochs for run in waiting
        }
        self.left, self.done = sum(self.cost.values()), 0

    def started(self, run: Run, giver: Run | None) -> None:
        shared = f", stage 1 from {giver.name}" if giver is not None else ""
        self.console.say(f"{self._place(run)}: {run.words}{shared}")

    def ended(self, run: Run, why: str | None) -> None:
        self.left -= self.cost[run]
        self.done += self.cost[run]
        spent = time.monotonic() - self.began
        rest = timedelta(seconds=round(spent / self.done * self.left))
        after = f"; about {rest} left" if self.left else ""
        (self.console.say if why is None else self.console.warn)(
            f"{self._place(run)}: {run.words}, {'finished' if why is None else f'failed: {why}'}{after}"
        )

    def _place(self, run: Run) -> str:
        return f"run {self.runs.index(run) + 1} of {len(self.runs)}"
