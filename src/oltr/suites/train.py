"""The runs of a suite, each an `oltr train` process, one after the other or side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from oltr.console import console
from oltr.data.sources import names_object
from oltr.errors import UserError
from oltr.suites.data import Data
from oltr.suites.processes import CommandProcess, side_by_side
from oltr.suites.run import Part, Run
from oltr.training.command import train_command
from oltr.training.options import TrainOptions


def train_runs(part: Part, data: Data, jobs: int = 1, cpu: bool = False) -> Iterator[tuple[Run, str | None]]:
    """Train what is not finished; each run as it ends, with why it failed.

    Interrupted runs come first. Of runs that share stage 1 one trains it, the others wait for its weights; a
    run with a teacher waits for its end.
    """
    waiting = [run for run in part.runs if not part.finished(run)]
    waiting.sort(key=lambda run: not part.started(run))
    progress, unfinished = _Progress(part, waiting), set(waiting)

    def start(run: Run, running: list[Run]) -> CommandProcess | None:
        if run.teacher in unfinished:
            return None
        shared = None
        if not part.started(run):
            others = [other for other in part.runs if run.shares_stage1(other)]
            shared = next((other for other in others if part.stage1_finished(other)), None)
            if shared is None and any(other in running for other in others):
                return None
        progress.started(run, shared)
        words = _command(part, run, data)
        words += ["--stage1-from", str(part.out / shared.name)] if shared else []
        words += ["--cpu"] if cpu else []
        words += ["--workers", str(max(TrainOptions().workers // jobs, 1))] if jobs > 1 else []
        return CommandProcess(words, jobs)

    for run, failure in side_by_side(waiting, jobs, start):
        unfinished.discard(run)
        progress.ended(run, failure)
        yield run, failure


def _command(part: Part, run: Run, data: Data) -> list[str]:
    source = data.source if names_object(data.source) else str(Path(data.source).expanduser().absolute())
    words, exact = train_command(run.config, source, root=data.root, out=part.out / run.name)
    if not exact:
        raise UserError(f"The recipe {run.config.recipe} has changed.", try_this="start the suite again")
    return [*words, "--resume"]


class _Progress:
    """Says which run started and ended, and estimates the time left."""

    def __init__(self, part: Part, waiting: Sequence[Run]):
        self.runs, self.begun = list(part.runs), time.monotonic()
        trained_by = part.stage1_runs()
        # In epochs; start and evaluation of a run count as one.
        self.cost = {
            run: 1 + sum(run.stage_epochs) - (trained_by[run] is not run) * run.config.stage1.epochs
            for run in waiting
        }
        self.left, self.done = sum(self.cost.values()), 0

    def started(self, run: Run, shared: Run | None) -> None:
        console.say(self._name(run) + (f", stage 1 from {shared.name}" if shared else ""))

    def ended(self, run: Run, failure: str | None) -> None:
        self.left -= self.cost[run]
        self.done += self.cost[run]
        seconds = (time.monotonic() - self.begun) / self.done * self.left
        after = f"; about {timedelta(seconds=round(seconds))} left" if self.left else ""
        if failure is None:
            console.say(f"{self._name(run)}, finished{after}")
        else:
            console.warn(f"{self._name(run)}, failed: {failure}{after}")

    def _name(self, run: Run) -> str:
        place = f"run {self.runs.index(run) + 1} of {len(self.runs)}"
        return f"{place}: {run.title}, seed {run.config.seed}"
