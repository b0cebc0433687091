"""`oltr evaluate` and `oltr compare`: numbers of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from oltr.cli.options import Json, Root, Run, print_json
from oltr.errors import UserError

Markdown = Annotated[bool, tyro.conf.arg(help="print the table as Markdown")]


def evaluate(
    run: Run,
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE")] = None,
    score: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    shots: Literal["standard", "released"] | None = None,
    per_class: int = 0,
    root: Root = None,
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """Measure a run again, from its cached outputs (its report.json is rewritten), or on another source.

    Args:
        source: other data with the run's classes: images are read, the run's report stays as it is
        score: what calls an image unknown (`oltr methods` lists them); the method's own unless given
        threshold: where the score divides known from unknown; 0.1 for softmax, 0.5 for openmax unless given
        unknown_rate: instead, choose it such that at most this share of validation images is called unknown
        shots: where the shot groups end; as the run was trained unless given
        per_class: also show this many of the worst classes
    """
    from oltr.console import Console
    from oltr.runs.evaluate_run import cached_outputs, make_report
    from oltr.runs.read_outputs import outputs_on, source_to_measure
    from oltr.runs.tables import per_class as class_table
    from oltr.training.run_folder import RunFolder

    if per_class < 0:
        raise UserError(f"--per-class {per_class} is negative.", try_this="--per-class 10")
    if root is not None and source is None:
        raise UserError("--root was given without a --source.", try_this="--source SOURCE --root DIR")
    folder, console = RunFolder(run), Console()
    manifest = None
    if source is None:
        outputs = cached_outputs(folder)
    else:
        folder.run()
        manifest = source_to_measure(folder, source, root)
        console.notes(manifest.notes)
        outputs = outputs_on(folder, manifest, console)
    report = make_report(folder, outputs, score, threshold, unknown_rate, shots, manifest, console)
    if source is None:
        report.save(folder.report)
    if as_json:
        print(report.to_json(), end="")
        return
    tables = [report.table(), *([class_table(report, per_class)] if per_class else [])]
    print("\n\n".join(table.markdown() if markdown else table.text() for table in tables))


def compare(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [RUN ...]")] = (),
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """Several runs in one table shaped like the paper's, with published numbers below where there are any.

    Args:
        runs: run folders
    """
    from oltr.report.compare import load_reports
    from oltr.runs.tables import comparison

    reports = load_reports(runs)
    if as_json:
        print_json({name: report.data for name, report in reports.items()})
        return
    table = comparison(reports)
    print(table.markdown() if markdown else table.text())
