"""`oltr suite`: a table of the paper, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from oltr.cli.options import SOURCE, Epochs, Json, Root, print_json
from oltr.cli.train import Changes
from oltr.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oltr.data.manifest import Manifest
    from oltr.engine.console import Console
    from oltr.engine.suite_file import Suite
    from oltr.engine.suite_plan import Run
    from oltr.engine.suite_rows import Results


def suite(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE", help=SOURCE)] = None,
    seeds: int = 1,
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME [NAME ...]")] = (),
    recipe: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    epochs: Epochs = (),
    changes: Changes = (),
    jobs: int = 1,
    out: Path | None = None,
    cpu: bool = False,
    dry_run: bool = False,
    root: Root = None,
    as_json: Json = False,
) -> int:
    """Train every row of a table, several seeds if wanted, and print it beside the published numbers.

    Called again after an interruption it goes on where it stopped; finished runs are not repeated. The
    table so far is in --out after every run: table.md, table.csv, suite.json. Exit code 1 if a run failed.

    Args:
        name: imagenet-lt, places-lt, sun-lt, open-detection, ablation, cifar100-lt, glyphs, or a YAML file
        seeds: so many, from 0 on
        methods: only the rows of these methods, or with these labels
        recipe: another setting than the suite's, e.g. cifar100-lt-50
        epochs: of each run in all, or of stage 1 and stage 2: for a quick look
        changes: change one setting of every run, e.g. --set weights=pretrained
        jobs: runs side by side, each in a process of its own
        out: the folder for runs and table; runs/NAME unless given
        cpu: train on the CPU although there is a GPU
        dry_run: say which runs there would be, which of them share stage 1, and stop
    """
    import dataclasses

    from oltr.engine.console import Console
    from oltr.engine.suite import check_kept, run_suite
    from oltr.engine.suite_check import check_rows, measurable
    from oltr.engine.suite_file import chosen_rows, load_suite
    from oltr.engine.suite_plan import plan_runs, unequal_epochs
    from oltr.recipes import load_recipe

    if jobs < 1:
        raise UserError(f"--jobs {jobs} is too small.", try_this="--jobs 1 or more")
    console, wanted = Console(), load_suite(name)
    table = chosen_rows(wanted, methods)
    if recipe not in (None, wanted.recipe):
        table = dataclasses.replace(table, recipe=recipe, about=load_recipe(recipe).about)
    check_rows(table, own_recipe=table.recipe == wanted.recipe)
    runs, out = plan_runs(table, seeds, epochs, changes), out or Path("runs") / table.name
    if warning := unequal_epochs(runs):
        console.warn(warning)
    if dry_run:
        _tell_plan(runs, out, as_json)
        return 0
    source = str(source or _data(table, out, console))
    manifest = _read(table, source, root)
    console.notes(manifest.notes)
    planned, table = table, measurable(table, manifest.sizes())
    if left_out := len(planned.rows) - len(table.rows):
        console.say(f"no open images in the source: {left_out} rows about scores are left out")
    runs = [run for run in runs if any(run.measures(row) for row in table.rows)]
    check_kept(runs, out, manifest)
    notes = [*table.notes, *_notes(table, epochs, changes), *([warning] if warning else [])]
    facts = {"epochs": list(epochs), "changes": list(changes)}
    for results in run_suite(table, runs, out, source, manifest, console, root=root, jobs=jobs, cpu=cpu):
        shown, everything = _write(results, manifest, source, notes, facts)
    if as_json:
        print_json(everything)
    else:
        print(shown)
    console.say(f"written: {out / 'table.md'}, table.csv, suite.json")
    for line in (failed := results.failed()):
        console.warn(f"failed: {line}")
    return 1 if failed else 0


def _data(table: Suite, out: Path, console: Console) -> Path:
    """The suite's own data if it has any; else the commands that make it."""
    if table.source is None and table.recipe == "glyphs":
        from oltr.cli.glyph_pack import draw_glyphs

        return draw_glyphs(out, 0, console)
    made = f"Its data are made with:\n{table.source.rstrip()}" if table.source else ""
    raise UserError(f"The suite {table.name} needs --source.", made)


def _read(table: Suite, source: str, root: Path | None) -> Manifest:
    from oltr.data.sources import read_source
    from oltr.engine.fit import check_trainable

    if table.source is not None and not Path(source).expanduser().exists():
        made = f"The data of suite {table.name} are made with:\n{table.source.rstrip()}"
        raise UserError(f"There is no file or folder {source}.", made)
    manifest = read_source(source, root)
    check_trainable(manifest)
    return manifest


def _notes(table: Suite, epochs: Sequence[int], changes: Sequence[str]) -> list[str]:
    """What makes this table another than the suite's own."""
    notes = [f"Recipe {table.recipe}."]
    if epochs:
        notes.append(f"A quick look: --epochs {' '.join(map(str, epochs))} instead of the recipe's.")
    if changes:
        notes.append(f"Changed in every run: {', '.join(changes)}.")
    return notes


def _write(
    results: Results, manifest: Manifest, source: str, notes: Sequence[str], facts: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The table's files; its text, and what suite.json holds."""
    import time

    from oltr.report.suite_files import write_suite
    from oltr.report.suite_table import suite_table

    table = results.suite
    shown = suite_table(f"{table.name}: {table.about}", results.rows, table.columns, notes)
    everything = {
        "suite": table.name,
        "recipe": table.recipe,
        **facts,
        "date": time.strftime("%Y-%m-%d"),
        "source": source,
        "data": {"fingerprint": manifest.fingerprint(), "images": manifest.sizes()},
        "notes": list(notes),
        **results.facts(),
    }
    written = write_suite(results.out, shown, results.rows, table.columns, everything)
    return shown.text(), written


def _tell_plan(runs: Sequence[Run], out: Path, as_json: bool) -> None:
    """Each run with its epochs, its state, and where its stage 1 comes from."""
    from oltr.data.wording import count
    from oltr.engine.run_folder import RunFolder
    from oltr.engine.suite_plan import finished, stage1_givers

    givers = stage1_givers(runs, out)
    plan: list[dict[str, Any]] = []
    for run in runs:
        begun = RunFolder(out / run.name).last.is_file()
        state = "finished" if finished(run, out) else "goes on" if begun else "new"
        shared = None if givers[run] is run else givers[run].name
        stages = [run.config.stage(number).epochs for number in range(1, run.config.num_stages + 1)]
        plan.append({"run": run.name, "epochs": stages, "stage1_from": shared, "state": state})
    if as_json:
        print_json({"out": str(out), "runs": plan})
        return
    width = max(len(run.name) for run in runs)
    for entry in plan:
        epochs = " + ".join(map(str, entry["epochs"]))
        shared = f"stage 1 from {entry['stage1_from']}" if entry["stage1_from"] else "a stage 1 of its own"
        print(f"{entry['run']:<{width}}  {epochs:>9} epochs, {entry['state']}, {shared}")
    print(f"{count(len(runs), 'run')}, into {out}")
