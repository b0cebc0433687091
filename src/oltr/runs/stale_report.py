"""A report of other classes than those the run knows now says so."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from oltr.console import console
from oltr.errors import UserError
from oltr.runs.report import Report
from oltr.wording import first_few

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

NOT_MEASURED = "not measured, for want of test images"


def note_changes(run: TrainedRun) -> None:
    """Write into report.json that its figures are of other classes, or take the note back."""
    try:
        report = Report.load(run.folder.report)
    except UserError:  # there is none, or it cannot be read: `oltr evaluate` makes it
        return
    if report.note != (note := stale_note(run, report)):
        try:
            dataclasses.replace(report, note=note).save(run.folder.report)
        except UserError as problem:  # what was done to the classes is done
            console.warn(problem.what)
    run.__dict__.pop("report", None)


def unmeasured(run: TrainedRun) -> str | None:
    """Which added classes have no test images; their open images count as unknown."""
    tested = set(run.outputs["test"].labels.tolist())
    added = {each.name for each in run.changes.added}
    names = [name for number, name in enumerate(run.class_names) if name in added and number not in tested]
    return f"{NOT_MEASURED}: {first_few(names)}" if names else None


def stale_note(run: TrainedRun, report: Report) -> str | None:
    """How the classes known now differ from those that were measured; None where they do not."""
    measured, now = [each.name for each in report.per_class], run.class_names
    added = [name for name in now if name not in set(measured)]
    gone = [name for name in measured if name not in set(now)]
    if not added and not gone:
        return report.note if (report.note or "").startswith(NOT_MEASURED) else None
    parts = [f"without {first_few(added)}"] if added else []
    parts += [f"with {first_few(gone)}"] if gone else []
    return f"measured before the classes changed, {' and '.join(parts)}: oltr evaluate measures again"
