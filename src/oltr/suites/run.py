"""The runs of a suite: what each trains, in which folder, and which of them share a first stage."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch

from oltr.config import RunConfig
from oltr.errors import UserError
from oltr.recipes import with_epochs
from oltr.suites.suite_file import Suite, SuiteRow
from oltr.training.build import build_method
from oltr.training.configure import configure
from oltr.training.limits import check_limits
from oltr.training.resume import STAGE1_SETTINGS
from oltr.training.run_folder import RunFolder


@dataclass(frozen=True, eq=False)
class Run:
    """One training: a method with its changes under one seed; several rows may be measured on it."""

    method: str
    changes: tuple[str, ...]
    config: RunConfig
    teacher: Run | None = None  # which has to be finished first

    @property
    def name(self) -> str:
        """Its folder; a change is part of the name, with characters unfit for file names as %XX."""
        words = [self.method, *(change.removeprefix("settings.") for change in self.changes)]
        return f"{'+'.join(quote(word, safe='=') for word in words)}-{self.config.seed}"

    @property
    def title(self) -> str:
        """Its name for people, without the seed."""
        return " + ".join([self.method, *self.changes])

    @property
    def stage_epochs(self) -> list[int]:
        """Epochs of each stage."""
        return [self.config.stage(number).epochs for number in range(1, self.config.num_stages + 1)]

    @cached_property
    def stage1_key(self) -> str | None:
        """Equal for runs whose stage 1 leads to the same weights; None if there is no stage 1 to share."""
        if not self.config.stage1.epochs or self.config.head_only:
            return None
        kind = build_method(self.config, torch.tensor([2, 1])).first_stage  # whatever the class counts are
        values = dataclasses.asdict(self.config)
        return json.dumps([kind, *(values[name] for name in STAGE1_SETTINGS)], sort_keys=True)

    @property
    def lineage(self) -> list[Run]:
        """Itself, its teacher, the teacher's own, and so on."""
        return [self, *(self.teacher.lineage if self.teacher else [])]

    def shares_stage1(self, other: Run) -> bool:
        """Whether one of the two need not train stage 1."""
        return self is not other and self.stage1_key is not None and self.stage1_key == other.stage1_key

    def measures(self, row: SuiteRow) -> bool:
        """Whether the row is measured on this run."""
        return (row.method, row.changes) == (self.method, self.changes)


@dataclass(frozen=True)
class Part:
    """The runs of a suite on the same images, in one folder; all of them, except in a longtail sweep."""

    suite: Suite
    runs: list[Run]
    out: Path
    title: str = ""
    alpha: float = 0.0  # of a longtail sweep
    backbone: bool = False  # the other parts need its runs

    def folder(self, run: Run) -> RunFolder:
        return RunFolder(self.out / run.name)

    def started(self, run: Run) -> bool:
        """Whether there is something to resume from."""
        return self.folder(run).can_resume()

    def finished(self, run: Run) -> bool:
        """Whether the run was trained and evaluated; for identification, trained."""
        folder = self.folder(run)
        needed = [folder.report, folder.outputs / "test.safetensors"]
        if self.suite.identify is not None:
            needed = [folder.path / "run.yaml", folder.model]
        return all(file.is_file() for file in needed) and folder.run()["finished"]

    def stage1_finished(self, run: Run) -> bool:
        return self.folder(run).stage_weights(1).is_file()

    def stage1_runs(self) -> dict[Run, Run]:
        """Run → the run that trains its stage 1: one that has finished it, else the first that needs it."""
        chosen: dict[str, Run] = {}
        for run in sorted(self.runs, key=lambda run: not self.stage1_finished(run)):
            if run.stage1_key is not None:
                chosen.setdefault(run.stage1_key, run)
        return {run: chosen[run.stage1_key] if run.stage1_key else run for run in self.runs}

    def entries(self, base: Path) -> list[dict[str, Any]]:
        """Each run with its epochs, its state and whose stage 1 it shares; folders relative to `base`."""
        trained_by, found = self.stage1_runs(), []
        for run in self.runs:
            state = "finished" if self.finished(run) else "interrupted" if self.started(run) else "new"
            other = trained_by[run]
            shared = None if other is run else (self.out / other.name).relative_to(base).as_posix()
            name = (self.out / run.name).relative_to(base).as_posix()
            found.append({"run": name, "epochs": run.stage_epochs, "stage1_from": shared, "state": state})
        return found


def plan_runs(
    suite: Suite,
    seeds: int,
    epochs: Sequence[int] = (),
    changes: Sequence[str] = (),
    out: Path = Path("runs"),
) -> list[Run]:
    """All runs, one seed after the other, every name and number checked; `changes` hold for each of them.

    `out` is where they will be, and so where a teacher is to be found.
    """
    if seeds < 1:
        raise UserError(f"--seeds {seeds} is too small.", try_this="--seeds 1 or more")
    if len(epochs) > 2 or min(epochs, default=1) < 0:
        raise UserError(
            f"--epochs {' '.join(map(str, epochs))} is no number of epochs.",
            try_this="one number for the whole run, or one for each stage",
        )
    if epochs and not sum(epochs):
        raise UserError(f"--epochs {' '.join(map(str, epochs))} trains nothing.")
    kinds = {(row.method, row.changes): row.teacher for row in suite.rows}
    if fixed := [c for c in (*changes, *(c for _, own in kinds for c in own)) if c.startswith("seed=")]:
        raise UserError(f"{fixed[0]} is not possible in a suite.", try_this="--seeds N: the seeds 0 to N − 1")
    runs = []
    for seed in range(seeds):
        of_seed: dict[str | None, Run] = {}
        for (method, own), taught_by in kinds.items():
            # The row's changes are what it is about, so they come last.
            config = configure(suite.recipe, method, seed=seed, changes=(*changes, *own))
            if epochs:
                # Here --epochs shortens whatever a row has set.
                config = with_epochs(config, _divided(config, epochs))
                check_limits(config)
            if teacher := of_seed.get(taught_by):
                place = str((out / teacher.name).absolute())
                config = replace(config, distill=replace(config.distill, teacher=place))
            run = Run(method, own, config, teacher)
            of_seed[run.title] = run
            runs.append(run)
    return runs


def _divided(config: RunConfig, epochs: Sequence[int]) -> tuple[int, ...]:
    """`--epochs` such that every run has the same total: one number is the total, divided in the recipe's
    proportion; of two, a run with a single stage has the sum."""
    total = sum(epochs)
    if config.stage2 is None:
        return (total,)
    if total < 2:
        raise UserError(f"--epochs {total} is too short for two stages.", try_this="--epochs 2 or more")
    if len(epochs) == 2:
        return tuple(epochs)
    first = round(total * config.stage1.epochs / (config.stage1.epochs + config.stage2.epochs))
    first = max(min(first, total - 1), 1)
    return first, total - first


def unequal_epochs(runs: Iterable[Run]) -> str:
    """A sentence if not all runs train for the same number of epochs, else nothing."""
    by_total: dict[int, dict[str, None]] = {}
    for run in runs:
        by_total.setdefault(sum(run.stage_epochs), {})[run.title] = None
    if len(by_total) < 2:
        return ""
    parts = [f"{total} epochs for {', '.join(names)}" for total, names in sorted(by_total.items())]
    return f"Not all runs train equally long: {'; '.join(parts)}."
