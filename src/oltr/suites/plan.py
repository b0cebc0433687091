"""What a suite will do: its runs, what each trains and what it takes over from another."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
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

    @property
    def name(self) -> str:
        """Its folder; a change is part of the name, with what no file name may have written as %XX."""
        words = [self.method, *(quote(change.removeprefix("settings."), safe="=") for change in self.changes)]
        return f"{'+'.join(words)}-{self.config.seed}"

    @property
    def words(self) -> str:
        """Its name for people."""
        return f"{' + '.join([self.method, *self.changes])}, seed {self.config.seed}"

    @property
    def epochs(self) -> int:
        """Over its stages."""
        return sum(self.config.stage(number).epochs for number in range(1, self.config.num_stages + 1))

    @cached_property
    def first_stage(self) -> str | None:
        """Equal for runs whose stage 1 gives the same weights; None where there is nothing to share."""
        if not self.config.stage1.epochs:
            return None
        kind = build_method(self.config, torch.tensor([2, 1])).first_stage  # whatever the class counts are
        values = dataclasses.asdict(self.config)
        # A method's settings can only matter where stage 1 is its own.
        settings = {} if kind.split(",")[0] == "plain" else values["settings"]
        return json.dumps([kind, settings, [values[name] for name in STAGE1_SETTINGS]], sort_keys=True)

    def measures(self, row: SuiteRow) -> bool:
        """Whether the row is read off this run."""
        return (row.method, row.changes) == (self.method, self.changes)


def plan_runs(suite: Suite, seeds: int, epochs: Sequence[int] = (), changes: Sequence[str] = ()) -> list[Run]:
    """All runs, one seed after the other, every name and number checked; `changes` hold for each of them."""
    if seeds < 1:
        raise UserError(f"--seeds {seeds} is too small.", try_this="--seeds 1 or more")
    if len(epochs) > 2 or min(epochs, default=1) < 0:
        raise UserError(
            f"--epochs {' '.join(map(str, epochs))} is no number of epochs.",
            try_this="one number for the whole run, or one for each stage",
        )
    if epochs and not sum(epochs):
        raise UserError(f"--epochs {' '.join(map(str, epochs))} trains nothing.")
    kinds = dict.fromkeys((row.method, row.changes) for row in suite.rows)
    if fixed := [c for c in (*changes, *(c for _, own in kinds for c in own)) if c.startswith("seed=")]:
        raise UserError(f"{fixed[0]} is not possible in a suite.", try_this="--seeds N: the seeds 0 to N − 1")
    runs = []
    for seed in range(seeds):
        for method, own in kinds:
            # The row's changes are what it is about, so they come last.
            config = configure(suite.recipe, method, seed=seed, changes=(*changes, *own))
            if epochs:
                # Here --epochs shortens whatever a row has set.
                config = with_epochs(config, _divided(config, epochs))
                check_limits(config)
            runs.append(Run(method, own, config))
    return runs


def _divided(config: RunConfig, epochs: Sequence[int]) -> tuple[int, ...]:
    """`--epochs` such that every run gets as many: one number is the total, divided as the recipe does it;
    of two, a run with a single stage has the sum."""
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


def stage1_givers(runs: Sequence[Run], out: Path) -> dict[Run, Run]:
    """Run → the run that trains its stage 1: one that has finished it, else the first that needs it."""
    givers: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: not RunFolder(out / run.name).stage_weights(1).is_file()):
        if run.first_stage is not None:
            givers.setdefault(run.first_stage, run)
    return {run: givers[run.first_stage] if run.first_stage else run for run in runs}


def finished(run: Run, out: Path) -> bool:
    """Whether the run was trained and evaluated."""
    folder = RunFolder(out / run.name)
    evaluated = folder.report.is_file() and (folder.outputs / "test.safetensors").is_file()
    return evaluated and folder.run()["finished"]


def unequal_epochs(runs: Iterable[Run]) -> str:
    """A sentence if not all runs train equally long, else nothing."""
    by_total: dict[int, list[str]] = {}
    for run in runs:
        names = by_total.setdefault(run.epochs, [])
        name = " + ".join([run.method, *run.changes])
        names += [name] if name not in names else []
    if len(by_total) < 2:
        return ""
    parts = [f"{total} epochs for {', '.join(names)}" for total, names in sorted(by_total.items())]
    return f"Not all runs train equally long: {'; '.join(parts)}."
