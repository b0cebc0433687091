"""What people do with images and classes, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from oltr.errors import UserError
from oltr.openworld.add_class import NewImages, learn_class
from oltr.openworld.change_classes import LaterActions, reject_images, remove_class, rename_class, undo
from oltr.openworld.class_names import as_kept, checked_new_name, known_class, taken_name
from oltr.runs.history import Action, CollectedImage
from oltr.serve.conflict import Conflict, Missing
from oltr.serve.state import Done, State
from oltr.serve.uploads import Upload
from oltr.wording import count


class Actions:
    """Each is on disk before it returns, and tells which answers it changed."""

    def __init__(self, state: State):
        self.state = state

    def add_class(self, name: str, numbers: Sequence[str], more: bool = False, by: str = "") -> Done:
        """Give images a name: a new class, or with `more` one that is known."""

        def act() -> tuple[int, dict[str, Any]]:
            run, uploads = self.state.run, self._without_mark(numbers)
            if not more and (taken := taken_name(name, run.class_names)) is not None:
                raise self._class_there(taken)
            checked = self._class(name) if more else checked_new_name(run, name)
            features = np.stack([upload.outputs[: self.state.answers.features] for upload in uploads])
            files, paths = [run.path / each.kept for each in uploads], [each.name for each in uploads]
            new = NewImages(files, paths, [each.id for each in uploads], torch.from_numpy(features))
            added = learn_class(run, checked, new, more=more, by=by)
            warnings = [
                {"text": warning.text, "images": [uploads[row].id for row in warning.rows]}
                for warning in added.warnings
            ]
            return added.action, {"name": checked, "images": added.images, "warnings": warnings}

        return self.state.acted(act)

    def reject(self, numbers: Sequence[str], by: str = "") -> Done:
        """Put images aside that are not worth a name."""

        def act() -> tuple[int, dict[str, Any]]:
            uploads = self._without_mark(numbers)
            none = np.empty(0, np.float32)
            images = [CollectedImage(each.name, each.kept, none) for each in uploads]
            return reject_images(self.state.run, images, by), {"images": len(images)}

        return self.state.acted(act)

    def rename_class(self, name: str, to: str, by: str = "") -> Done:
        """Give a class another name."""

        def act() -> tuple[int, dict[str, Any]]:
            known = self._class(name)
            others = (each for each in self.state.run.class_names if each != known)
            if (taken := taken_name(to, others)) is not None:
                raise self._class_there(taken, "another name")
            return rename_class(self.state.run, known, to, by), {"name": as_kept(to)}

        return self.state.acted(act)

    def remove_class(self, name: str, by: str = "") -> Done:
        """Forget a class; images that were given its name wait again."""
        return self.state.acted(lambda: (remove_class(self.state.run, self._class(name), by), {"name": name}))

    def undo(self, number: int | None = None, by: str = "") -> Done:
        """Take back an action, the last that holds unless a number is given."""

        def act() -> tuple[int, dict[str, Any]]:
            self._check_undoable(number)
            try:
                undone = undo(self.state.run, number, by)
            except LaterActions as problem:
                later = [_told(each, "later") for each in problem.later]
                raise Conflict(problem.what, problem.why, problem.try_this, later) from None
            facts = {"undone": undone.id, "kind": undone.kind, "name": undone.name}
            return self.state.run.changes.last, facts

        return self.state.acted(act)

    def _without_mark(self, numbers: Sequence[str]) -> list[Upload]:
        """The images, refused where somebody has named or rejected one of them."""
        snapshot = self.state.snapshot
        uploads = [snapshot.upload(number) for number in dict.fromkeys(numbers)]
        if not uploads:
            raise UserError("No images were named.")
        taken = [(each, snapshot.marks[each.id]) for each in uploads if each.id in snapshot.marks]
        if taken:
            raise Conflict(
                f"{count(len(taken), 'image')} of {len(uploads)} {'was' if len(taken) == 1 else 'were'} "
                "named or rejected meanwhile.",
                try_this="the others, or undo",
                conflicts=[
                    {
                        "id": upload.id,
                        "status": mark.status,
                        "named": mark.name,
                        "action": mark.action,
                        "by": mark.by,
                    }
                    for upload, mark in taken
                ],
            )
        return uploads

    def _class_there(self, name: str, hint: str = "add the images to it, or another name") -> Conflict:
        actions = self.state.run.history.actions(features=False)
        made = [each for each in actions if each.kind == "add" and each.name == name and not each.undone_by]
        number, by = (made[0].id, made[0].details.get("by", "")) if made else (None, "")
        return Conflict(
            f"The run knows a class {name!r} already.",
            try_this=hint,
            conflicts=[{"name": name, "action": number, "by": by}],
        )

    def _class(self, name: str) -> str:
        try:
            return known_class(self.state.run, name)
        except UserError as problem:
            why = "It was removed or renamed, or never there."
            raise Missing(problem.what, problem.why or why, problem.try_this) from None

    def _check_undoable(self, number: int | None) -> None:
        """Refuse an action that is not there, or that somebody has undone."""
        if number is None:
            return
        actions = {each.id: each for each in self.state.run.history.actions(features=False)}
        if number not in actions:
            raise Missing(f"There is no action {number}.")
        undoing = actions.get(actions[number].undone_by or 0)
        if undoing is not None:
            raise Conflict(f"Action {number} was undone already.", conflicts=[_told(undoing, "undone")])


def _told(action: Action, reason: str) -> dict[str, Any]:
    """An action that stands against an undoing, and why."""
    facts = {"action": action.id, "kind": action.kind, "name": action.name, "reason": reason}
    to = {"to": action.details["to"]} if action.kind == "rename" else {}
    return facts | {"by": str(action.details.get("by", ""))} | to
