"""Classes removed and renamed, images rejected, and an earlier action undone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oltr.errors import UserError
from oltr.openworld.class_names import checked_new_name, known_class
from oltr.runs.action_text import action_text
from oltr.runs.class_changes import fold
from oltr.runs.history import Action, CollectedImage, as_of
from oltr.runs.stale_report import note_changes
from oltr.runs.trained_run import TrainedRun


class LaterActions(UserError):
    """An action that others build on cannot be undone before them."""

    def __init__(self, action: Action, later: Sequence[Action]):
        self.later = list(later)
        last = later[-1]
        super().__init__(
            f"Action {action.id} ({action_text(action)}) cannot be undone.",
            f"Later actions build on it; the last is {last.id}: {action_text(last)}.",
            f"undo {last.id} first",
        )


def remove_class(run: TrainedRun, name: str, by: str = "") -> int:
    """Let the run forget a class: its row is left out. The action's number."""
    name = known_class(run, name)
    if len(run.class_names) <= 2:
        raise UserError(f"{name} is one of the run's last two classes.", "Recognition needs at least two.")
    return _recorded(run, run.history.record("remove", name, signed(by), after=run.changes.last))


def rename_class(run: TrainedRun, name: str, to: str, by: str = "") -> int:
    """Give a class another name. The action's number."""
    name = known_class(run, name)
    to = checked_new_name(run, to, renamed=name)
    return _recorded(run, run.history.record("rename", name, {"to": to} | signed(by), after=run.changes.last))


def reject_images(run: TrainedRun, images: Sequence[CollectedImage], by: str = "") -> int:
    """Note that images are not worth a name; the classes stay as they are. The action's number."""
    details = {"images": len(images)} | signed(by)
    number = run.history.record("reject", "", details, after=run.changes.last, images=lambda: images)
    return _recorded(run, number)


def undo(run: TrainedRun, number: int | None = None, by: str = "") -> Action:
    """Take back an action, the last that holds unless a number is given; which one."""
    active = run.history.active()
    if not active:
        raise UserError(f"There is nothing to undo in {run.path}.", "Its classes are those of its training.")
    found = [each for each in active if each.id == number] if number is not None else active[-1:]
    if not found:
        raise UserError(f"There is no action {number} that could be undone.", try_this="oltr history")
    if later := _built_on(run, found[0], active):
        raise LaterActions(found[0], later)
    _recorded(run, run.history.undo(found[0].id, signed(by), after=run.changes.last))
    return found[0]


def signed(by: str) -> dict[str, str]:
    """Who did it, as details of an action keep it."""
    return {"by": by} if by else {}


def _built_on(run: TrainedRun, action: Action, active: Sequence[Action]) -> list[Action]:
    """Later actions on the same class, whatever it is called by then, or on images that it would get back."""
    if action.kind == "reject":
        return []
    names, later, images = {action.name, action.details.get("to")}, [], _brought_back(run, action)
    for each in active:
        if each.id <= action.id:
            continue
        if each.name in names and each.kind != "reject":
            names.add(each.details.get("to"))
            later.append(each)
        elif any(Path(image.kept).stem in images for image in each.images):
            later.append(each)
    return later


def _brought_back(run: TrainedRun, action: Action) -> set[str]:
    """Images of the class that returns when its removal is undone."""
    if action.kind != "remove":
        return set()
    before = fold(run.changes.trained, as_of(run.history.actions(), action.id - 1))
    return {Path(file).stem for each in before.added if each.name == action.name for file in each.files}


def _recorded(run: TrainedRun, number: int) -> int:
    run.reread_classes()
    note_changes(run)
    return number
