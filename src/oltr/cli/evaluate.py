"""`oltr evaluate` and `oltr compare`: numbers of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from oltr.cli.options import By, Json, Root, Run, Score, SkipBroken, print_json
from oltr.errors import UserError

Markdown = Annotated[bool, tyro.conf.arg(help="print the table as Markdown")]


def evaluate(
    run: Run,
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE")] = None,
    score: Score = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    keep: bool = False,
    shots: Literal["standard", "released"] | None = None,
    per_class: int = 0,
    parents: Path | None = None,
    precision: float | None = None,
    by: By = (),
    root: Root = None,
    skip_broken: SkipBroken = False,
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """Measure a run from its cached outputs, or on another source; under its own rejection rule or another.

    Where classes were added or removed, open images of a class that is known now are test images of it, less
    those that it was learned from, and test images of a removed class are open.

    The run is changed (its rule in run.yaml, its report.json) only with --keep; under its own rule its
    report.json is written anew.

    Args:
        source: other data with the run's classes: images are read, the run's report stays as it is
        score: what tells unknown images (`oltr methods` lists scores); the run's own unless given
        threshold: where the score divides known from unknown
        unknown_rate: instead, choose it such that at most this share of known validation images is rejected
        keep: make this the run's rejection rule, for every verb from now on
        shots: where the shot groups end; as the run was trained unless given
        per_class: also show this many of the worst classes
        parents: a table `label,parent` (genus, family): answers by a parent where the class is unsure
        precision: how many of the answers of each level are to be right; 0.95 unless given
        by: also accuracy by a column of the data (site, camera, sex ...), or by folder; may be repeated
    """
    from oltr.console import console
    from oltr.data.broken import write_skipped
    from oltr.runs.by_group import groups_table
    from oltr.runs.measure_levels import measure_levels
    from oltr.runs.parents import PRECISION, fit_rollup
    from oltr.runs.tables import per_class as class_table
    from oltr.runs.trained_run import TrainedRun

    if per_class < 0:
        raise UserError(f"--per-class {per_class} is negative.", try_this="--per-class 10")
    if root is not None and source is None:
        raise UserError("--root was given without a --source.", try_this="--source SOURCE --root DIR")
    if skip_broken and source is None:
        raise UserError("--skip-broken was given without a --source.", "The run's own images were read.")
    if keep and source is not None:
        raise UserError(
            "--keep and --source do not go together.",
            "A run's rule and report are about its own data.",
            "--keep without --source",
        )
    if precision is not None and parents is None:
        raise UserError("--precision was given without --parents.", try_this="--parents TABLE")
    opened = TrainedRun(run)
    if source is not None:
        opened = opened.on(source, root, skip_broken)
        if opened.other_data is not None and opened.other_data.skipped:
            listed = opened.path / "skipped-evaluate.txt"
            write_skipped(opened.other_data.skipped, listed)
            console.say(f"all that were left out: {listed}")
    own = opened.rule
    measured = opened.under(opened.other_rule(score, threshold, unknown_rate))
    rollup = None
    if parents is not None:
        rollup = fit_rollup(measured, parents, PRECISION if precision is None else precision)
    measured.grouped_by = by
    report = replace(measured.measure(shots), by_group=measured.by_group or None)
    if keep:
        opened.keep_rule(measured.rule)
    if source is None and (keep or (measured.rule == own and shots is None)):
        report.save(opened.folder.report)
    if rollup is not None:
        report = replace(report, parents=measure_levels(measured, rollup))
    if as_json:
        print(report.to_json(), end="")
        return
    tables = [report.table(), *([class_table(report, per_class)] if per_class else [])]
    tables += [report.parents.table()] if report.parents is not None else []
    tables += [groups_table(column, found) for column, found in measured.by_group.items()]
    print("\n\n".join(table.markdown() if markdown else table.text() for table in tables))
    if measured.rule != own and not keep:
        console.say(f"The run keeps its own rule; --keep changes it. {own}")


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
