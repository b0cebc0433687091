"""A suite whose runs all learn from the same images: from the queue to the table, and the sweep beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oltr.errors import UserError

if TYPE_CHECKING:
    from oltr.console import Console
    from oltr.data.manifest import Manifest
    from oltr.suites.order import Order
    from oltr.suites.plan import Run
    from oltr.suites.suite_file import Suite


def fill_table(order: Order, runs: Sequence[Run], console: Console) -> int:
    """Train what is not finished, write the table after every run, and tell it; the exit code."""
    from oltr.suites.check import check_sweep, measurable
    from oltr.suites.run_suite import check_kept, run_suite

    planned, out = order.table, order.out
    source = str(order.source or _data(planned, out, console))
    manifest = _read(planned, source, order.root)
    console.notes(manifest.notes)
    check_sweep(planned, manifest)
    table = measurable(planned, manifest.sizes())
    if left_out := len(planned.rows) - len(table.rows):
        console.say(f"no open images in the source: {left_out} rows about scores are left out")
    runs = [run for run in runs if any(run.measures(row) for row in table.rows)]
    check_kept(runs, out, manifest)
    facts = order.facts(source, manifest)
    for results in run_suite(
        table, runs, out, source, manifest, console, root=order.root, jobs=order.jobs, cpu=order.cpu
    ):
        told = order.write(table, results.rows, {**facts, **results.facts()})
    curves = []
    if table.sweep:
        from oltr.suites.sweep import swept

        curves = swept(results, manifest, console)
    if curves:
        told = order.write_sweep(curves, {**facts, **results.facts()})
    return order.tell(*told, results.failed(), console, swept=bool(curves))


def _data(table: Suite, out: Path, console: Console) -> Path:
    """The suite's own data if it has any; else the commands that make it."""
    if table.source is None and table.recipe == "glyphs":
        from oltr.cli.glyph_pack import draw_glyphs

        return draw_glyphs(out, 0, console)
    made = f"Its data are made with:\n{table.source.rstrip()}" if table.source else ""
    raise UserError(f"The suite {table.name} needs --source.", made)


def _read(table: Suite, source: str, root: Path | None) -> Manifest:
    from oltr.data.sources import read_source
    from oltr.training.train import check_trainable

    if table.source is not None and not Path(source).expanduser().exists():
        made = f"The data of suite {table.name} are made with:\n{table.source.rstrip()}"
        raise UserError(f"There is no file or folder {source}.", made)
    manifest = read_source(source, root)
    check_trainable(manifest)
    return manifest
