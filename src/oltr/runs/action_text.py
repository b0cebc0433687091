"""A change of classes in words."""

from __future__ import annotations

from oltr.runs.history import Action
from oltr.wording import count


def action_text(action: Action) -> str:
    """`added 'lynx' from 3 images`, `renamed 'linx' to 'lynx'` ..."""
    if action.kind == "add":
        more = "more of" if action.details.get("more") else "added"
        return f"{more} {action.name!r} from {count(int(action.details['images']), 'image')}"
    if action.kind == "rename":
        return f"renamed {action.name!r} to {action.details['to']!r}"
    if action.kind == "reject":
        return f"rejected {count(int(action.details['images']), 'image')}"
    if action.kind == "undo":
        return f"undid {action.details['undoes']}" + (f", of {action.name!r}" if action.name else "")
    return f"removed {action.name!r}"
