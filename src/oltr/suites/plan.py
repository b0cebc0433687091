"""From the options of `oltr suite` to a checked plan of its runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oltr.console import console
from oltr.errors import UserError
from oltr.recipes import load_recipe
from oltr.suites.check import check_rows
from oltr.suites.longtail import plan_longtail
from oltr.suites.run import Part, plan_runs, unequal_epochs
from oltr.suites.suite_file import Suite, load_suite, select_rows
from oltr.wording import count


@dataclass(frozen=True)
class IdentifySources:
    """Whom a suite identifies, and where; as in `oltr identify`."""

    probes: str | None = None
    gallery: str | None = None
    distractors: str | None = None
    train: str | None = None  # the suite's own source, unless given
    shots_from: tuple[str, str] | None = None
    groups: Path | None = None


@dataclass(frozen=True)
class SuiteOptions:
    """What `oltr suite` is asked for."""

    name: str
    source: str | None = None
    root: Path | None = None
    seeds: int = 1
    methods: tuple[str, ...] = ()
    recipe: str | None = None
    epochs: tuple[int, ...] = ()
    changes: tuple[str, ...] = ()
    alphas: tuple[float, ...] = ()
    jobs: int = 1
    out: Path | None = None
    cpu: bool = False
    faces: IdentifySources = IdentifySources()


@dataclass(frozen=True)
class Outcome:
    """What it prints, as text or as JSON; the files it wrote and the rows that failed."""

    text: str
    values: dict[str, Any]
    files: str = ""
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """What is to be trained and measured, and where to."""

    options: SuiteOptions
    suite: Suite
    parts: list[Part]
    out: Path
    warning: str

    @property
    def title(self) -> str:
        return f"{self.suite.name}: {self.suite.about}"


def plan_suite(options: SuiteOptions) -> Plan:
    """The plan, every name and number checked before anything is read or written."""
    if options.jobs < 1:
        raise UserError(f"--jobs {options.jobs} is too small.", try_this="--jobs 1 or more")
    wanted = load_suite(options.name)
    suite, own_recipe = select_rows(wanted, options.methods), options.recipe in (None, wanted.recipe)
    if options.recipe is not None and not own_recipe:
        about = wanted.about if wanted.sweep else load_recipe(options.recipe).about
        suite = dataclasses.replace(suite, recipe=options.recipe, about=about)
    if options.alphas:
        if suite.sweep != "longtail":
            raise UserError(f"The suite {suite.name} has no --alphas.", try_this="oltr suite sweep-longtail")
        suite = dataclasses.replace(suite, alphas=options.alphas)
    if suite.identify is None and options.faces != IdentifySources():
        raise UserError(
            f"The suite {suite.name} identifies nobody: --probes and its like are not for it.",
            try_this="oltr suite megaface, or a file with `identify:`",
        )
    out = options.out or Path("runs") / suite.name
    if suite.sweep == "longtail":
        parts = plan_longtail(suite, options.seeds, options.epochs, options.changes, out)
    else:
        runs = plan_runs(suite, options.seeds, options.epochs, options.changes, out)
        parts = [Part(suite, runs, out)]
    runs = parts[-1].runs
    check_rows(suite, runs, own_recipe)
    if warning := unequal_epochs(runs):
        console.warn(warning)
    return Plan(options, suite, parts, out, warning)


def describe_suite(options: SuiteOptions) -> Outcome:
    """The runs that there would be, with epochs, state, and whose stage 1 they share."""
    plan = plan_suite(options)
    entries = [entry for part in plan.parts for entry in part.entries(plan.out)]
    width = max(len(entry["run"]) for entry in entries)
    lines = []
    for entry in entries:
        epochs = " + ".join(map(str, entry["epochs"]))
        shared = f"stage 1 from {entry['stage1_from']}" if entry["stage1_from"] else "a stage 1 of its own"
        lines.append(f"{entry['run']:<{width}}  {epochs:>9} epochs, {entry['state']}, {shared}")
    text = "\n".join([*lines, f"{count(len(entries), 'run')}, into {plan.out}"])
    return Outcome(text, {"out": str(plan.out), "runs": entries})
