"""What people said of the images that wait: named, or rejected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oltr.runs.class_changes import ClassChanges
from oltr.runs.history import Action, holding

Status = Literal["unknown", "known", "named", "rejected"]


@dataclass(frozen=True)
class Mark:
    """A word on one image."""

    status: Literal["named", "rejected"]
    name: str | None  # the class that it was given, as it is called now
    action: int
    by: str
    time: str
    kept: str  # its copy, below the run folder


def marks_of(changes: ClassChanges, actions: Sequence[Action]) -> dict[str, Mark]:
    """By image; one whose class was removed again, or whose action was undone, has none."""
    names = {file: added.name for added in changes.added for file in added.files}
    found: dict[str, Mark] = {}
    for action in holding(actions):
        by = str(action.details.get("by", ""))
        for image in action.images:
            number = Path(image.kept).stem
            if action.kind == "reject":
                found[number] = Mark("rejected", None, action.id, by, action.time, image.kept)
            elif image.kept in names:
                found[number] = Mark("named", names[image.kept], action.id, by, action.time, image.kept)
    return found
