"""Classes removed and renamed, and the last change undone."""

from __future__ import annotations

from oltr.errors import UserError
from oltr.openworld.class_names import checked_new_name, known_class
from oltr.runs.history import Action
from oltr.runs.stale_report import note_changes
from oltr.runs.trained_run import TrainedRun


def remove_class(run: TrainedRun, name: str) -> int:
    """Let the run forget a class: its row is left out. The action's number."""
    name = known_class(run, name)
    if len(run.class_names) <= 2:
        raise UserError(f"{name} is one of the run's last two classes.", "Recognition needs at least two.")
    return _recorded(run, run.history.record("remove", name, {}, after=run.changes.last))


def rename_class(run: TrainedRun, name: str, to: str) -> int:
    """Give a class another name. The action's number."""
    name = known_class(run, name)
    to = checked_new_name(run, to, renamed=name)
    return _recorded(run, run.history.record("rename", name, {"to": to}, after=run.changes.last))


def undo(run: TrainedRun) -> Action:
    """Take back the last action that holds; which one."""
    active = run.history.active()
    if not active:
        raise UserError(f"There is nothing to undo in {run.path}.", "Its classes are those of its training.")
    _recorded(run, run.history.undo(active[-1].id, after=run.changes.last))
    return active[-1]


def _recorded(run: TrainedRun, number: int) -> int:
    run.reread_classes()
    note_changes(run)
    return number
