"""A suite end to end: runs trained, rows measured, table and sweep written."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from oltr.console import console
from oltr.suites.data import Prepared, prepare
from oltr.suites.files import BARS, table_folder, write_suite
from oltr.suites.measure import Results, run_facts
from oltr.suites.plan import Outcome, Plan, SuiteOptions, plan_suite
from oltr.suites.sweep import FILES, rule_note, sweep_curves, sweep_table, write_sweep
from oltr.suites.table import suite_table
from oltr.suites.train import train_runs


def run_suite(options: SuiteOptions) -> Outcome:
    """Train what is not finished; write the table after every run, and the sweep at the end."""
    plan = plan_suite(options)
    prepared = prepare(plan)
    facts, done = _facts(plan, prepared), list[Results]()
    for part, data in prepared.parts:
        if part.title:
            console.say(part.title)
        if finished := sum(map(part.finished, part.runs)):
            console.say(f"{finished} of {len(part.runs)} runs were finished before")
        done.append(Results(part, data.manifest, prepared.measured_by))
        outcome = _write_table(plan, done, facts)
        for run, failure in train_runs(part, data, options.jobs, options.cpu):
            if failure is None:
                done[-1].add(run)
            else:
                done[-1].fail(run, failure)
            outcome = _write_table(plan, done, facts)
        if part.backbone and done[-1].failed():
            break  # there is nothing to train on
    return _write_sweep(plan, done, facts, outcome) if plan.suite.sweep else outcome


def _facts(plan: Plan, prepared: Prepared) -> dict[str, Any]:
    """What was asked for, on which data, and what to know when reading the table."""
    suite, epochs, changes = plan.suite, plan.options.epochs, plan.options.changes
    notes = [*suite.notes, f"Recipe {suite.recipe}."]
    if epochs:
        notes.append(f"A quick look: --epochs {' '.join(map(str, epochs))} instead of the recipe's.")
    if changes:
        notes.append(f"Changed in every run: {', '.join(changes)}.")
    source, manifest, _ = prepared.whole
    return {
        "suite": suite.name,
        "recipe": suite.recipe,
        "epochs": list(epochs),
        "changes": list(changes),
        "date": time.strftime("%Y-%m-%d"),
        "source": source,
        "data": {"fingerprint": manifest.fingerprint(), "images": manifest.sizes()},
        "notes": [*notes, *prepared.notes, *([plan.warning] if plan.warning else [])],
        **prepared.facts,
    }


def _write_table(plan: Plan, done: Sequence[Results], facts: Mapping[str, Any]) -> Outcome:
    """The table's files, with all rows so far."""
    rows, columns = [row for results in done for row in results.rows], plan.suite.columns
    table = suite_table(plan.title, rows, columns, facts["notes"])
    into = table_folder(plan.out, plan.suite.name)
    values = write_suite(into, table, rows, columns, {**facts, **run_facts(done, plan.out)})
    drawn = [name for name in BARS if (into / name).is_file()]
    files = ", ".join([str(into / "table.md"), "table.csv", "suite.json", *drawn])
    return Outcome(table.text(), values, files, [line for results in done for line in results.failed()])


def _write_sweep(plan: Plan, done: Sequence[Results], facts: Mapping[str, Any], outcome: Outcome) -> Outcome:
    """The sweep's files beside those of the table, if any row has a curve."""
    if not (curves := sweep_curves(plan.suite, done)):
        return outcome
    notes = [*rule_note(plan.suite), *facts["notes"]]
    facts = {**facts, **run_facts(done, plan.out), "notes": notes}
    table = sweep_table(plan.title, str(plan.suite.sweep), curves, notes)
    into = table_folder(plan.out, plan.suite.name)
    values = write_sweep(into, table, str(plan.suite.sweep), curves, facts)
    return Outcome(table.text(), values, ", ".join([outcome.files, *FILES]), outcome.failed)
