"""`oltr add-class`, `remove-class`, `rename-class`, `history` and `undo`: the classes of a trained run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from oltr.cli.options import Images, Json, Run, print_json
from oltr.errors import UserError

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help="a class")]


def add_class(
    run: Run,
    name: Name,
    images: Images,
    more: bool = False,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Let a run know a new class from a few images, at once and without training.

    The other classes stay as they are; the rejection threshold is chosen anew. `oltr undo` takes it back.

    Args:
        more: the class is known already; these are more images of it
        out: leave RUN as it is, and write the run with the new class to this folder
    """
    from oltr.openworld.add_class import add_class as added
    from oltr.runs.copy_run import copied_run
    from oltr.runs.named_images import named_images
    from oltr.runs.trained_run import TrainedRun
    from oltr.wording import count

    if Path(name).is_file():
        why, usage = "The name of the class stands before the images.", f"oltr add-class {run} NAME IMAGES"
        raise UserError(f"{name} is a file.", why, usage)
    opened, named = TrainedRun(run), named_images(images)
    if out is None:
        result = added(opened, name, [Path(path) for path in named.paths], more=more)
    else:
        with copied_run(opened.path, out, "--out") as part:
            result = added(TrainedRun(part), name, [Path(path) for path in named.paths], more=more)
        opened = TrainedRun(out)
    if as_json:
        print_json(
            {"class": result.name, "images": result.images, "action": result.action}
            | _state(opened)
            | {"warnings": [warning.text for warning in result.warnings]}
        )
        return
    learned = f"{result.name!r} learned from {count(result.images, 'more image' if more else 'image')}"
    print(f"{learned}; {count(len(opened.class_names), 'class')} known. {opened.rule}")


def remove_class(run: Run, name: Name, as_json: Json = False) -> None:
    """Let a run forget a class: its images are unknown ones now, and `oltr evaluate` counts them so."""
    from oltr.openworld.change_classes import remove_class as removed
    from oltr.runs.trained_run import TrainedRun

    opened = TrainedRun(run)
    action = removed(opened, name)
    _tell(opened, f"{name!r} is no longer known", {"class": name, "action": action}, as_json)


def rename_class(
    run: Run,
    name: Name,
    to: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NEW", help="its new name")],
    as_json: Json = False,
) -> None:
    """Give a class of a run another name."""
    from oltr.openworld.change_classes import rename_class as renamed
    from oltr.openworld.class_names import as_kept
    from oltr.runs.trained_run import TrainedRun

    opened = TrainedRun(run)
    action, to = renamed(opened, name, to), as_kept(to)
    _tell(opened, f"{name!r} is now {to!r}", {"class": to, "action": action}, as_json)


def undo(run: Run, as_json: Json = False) -> None:
    """Take back the last change of a run's classes that holds; once more, the one before it."""
    from oltr.openworld.change_classes import undo as undone
    from oltr.runs.action_text import action_text
    from oltr.runs.trained_run import TrainedRun

    opened = TrainedRun(run)
    action = undone(opened)
    _tell(opened, f"undone: {action.id} {action_text(action)}", {"undone": action.id}, as_json)


def history(run: Run, as_json: Json = False) -> None:
    """What was done to a run's classes since training, oldest first."""
    from oltr.runs.action_text import action_text
    from oltr.runs.trained_run import TrainedRun

    actions = TrainedRun(run).history.actions(features=False)
    if as_json:
        entries = ((each, action_text(each)) for each in actions)
        print_json(
            [
                {
                    **each.details,
                    "action": each.id,
                    "time": each.time,
                    "kind": each.kind,
                    "class": each.name,
                    "text": text,
                    "undone_by": each.undone_by,
                    "images": [image.path for image in each.images],
                }
                for each, text in entries
            ]
        )
        return
    if not actions:
        print("Nothing: the classes are those of its training.")
    for each in actions:
        undone = f"  (undone by {each.undone_by})" if each.undone_by else ""
        print(f"{each.id:>4}  {each.time[:19].replace('T', ' ')}  {action_text(each)}{undone}")


def _tell(run: TrainedRun, text: str, result: dict[str, Any], as_json: bool) -> None:
    from oltr.wording import count

    if as_json:
        print_json(result | _state(run))
    else:
        print(f"{text}; {count(len(run.class_names), 'class')} known. {run.rule}")


def _state(run: TrainedRun) -> dict[str, Any]:
    return {"classes": len(run.class_names), "model": run.model_version, "threshold": run.rule.threshold}
