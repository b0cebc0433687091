"""`oltr suite`: a table or a sweep of the paper, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.options import SOURCE, Epochs, Json, Root
from oltr.cli.train import Changes
from oltr.errors import UserError


def suite(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE", help=SOURCE)] = None,
    seeds: int = 1,
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME [NAME ...]")] = (),
    recipe: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    epochs: Epochs = (),
    changes: Changes = (),
    alphas: Annotated[tuple[float, ...], tyro.conf.arg(metavar="NUMBER [NUMBER ...]")] = (),
    jobs: int = 1,
    out: Path | None = None,
    cpu: bool = False,
    dry_run: bool = False,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Train every row of a table, several seeds if wanted, and print it beside the published numbers.

    Called again after an interruption it goes on where it stopped; finished runs are not repeated. The
    table so far is in --out after every run: table.md, table.csv, suite.json, and bars.svg, bars.png of the
    finished rows. Exit code 1 if a run failed.
    A sweep adds its numbers and its picture: sweep.md, sweep.csv, sweep.json, sweep.svg, sweep.png.

    Args:
        name: imagenet-lt, places-lt, sun-lt, open-detection, ablation, cifar100-lt, glyphs; the sweeps
            sweep-threshold, sweep-open, sweep-longtail; or a YAML file
        seeds: so many, from 0 on
        methods: only the rows of these methods, or with these labels
        recipe: another setting than the suite's, e.g. cifar100-lt-50
        epochs: of each run in all, or of stage 1 and stage 2: for a quick look
        changes: change one setting of every run, e.g. --set weights=pretrained
        alphas: of sweep-longtail: the Pareto powers of the class sizes, smaller is more imbalanced
        jobs: runs side by side, each in a process of its own
        out: the folder for runs and table; runs/NAME unless given
        cpu: train on the CPU although there is a GPU
        dry_run: say which runs there would be, which of them share stage 1, and stop
    """
    import dataclasses

    from oltr.console import Console
    from oltr.recipes import load_recipe
    from oltr.suites.check import check_rows
    from oltr.suites.order import Order
    from oltr.suites.plan import plan_runs, unequal_epochs
    from oltr.suites.suite_file import chosen_rows, load_suite
    from oltr.suites.tell_plan import tell_plan

    if jobs < 1:
        raise UserError(f"--jobs {jobs} is too small.", try_this="--jobs 1 or more")
    console, wanted = Console(), load_suite(name)
    table = chosen_rows(wanted, methods)
    if recipe not in (None, wanted.recipe):
        setting = load_recipe(recipe).about
        table = dataclasses.replace(table, recipe=recipe, about=wanted.about if wanted.sweep else setting)
    if alphas:
        from oltr.suites.sweep_longtail import with_alphas

        table = with_alphas(table, alphas)
    check_rows(table, own_recipe=table.recipe == wanted.recipe)
    out = out or Path("runs") / table.name
    sweeps_data = table.sweep == "longtail"  # its runs have other images at every α
    if sweeps_data:
        from oltr.suites.plan_longtail import plan_longtail

        parts = plan_longtail(table, seeds, epochs, changes, out)
        runs = parts[-1].runs
    else:
        runs = plan_runs(table, seeds, epochs, changes)
    if warning := unequal_epochs(runs):
        console.warn(warning)
    if dry_run:
        planned = [(part.runs, part.out) for part in parts] if sweeps_data else [(runs, out)]
        tell_plan(planned, out, as_json)
        return 0
    order = Order(table, source, root, out, epochs, changes, warning, jobs, cpu, as_json)
    if sweeps_data:
        from oltr.suites.sweep_longtail import sweep_longtail

        return sweep_longtail(order, parts, console)
    from oltr.suites.fill_table import fill_table

    return fill_table(order, runs, console)
