"""`oltr import`: a checkpoint of the released code as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.options import SOURCE, Json, Root, print_json
from oltr.errors import UserError


def import_run(
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    out: Annotated[Path, tyro.conf.arg(metavar="RUN")],
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE", help=SOURCE)] = None,
    recipe: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Make a run folder from a checkpoint of the released code, such as final_model_checkpoint.pth.

    Stage 1 becomes a run of `plain`, stage 2 one of `oltr`, with the released rejection rule: softmax below
    0.1. With --source the run is measured on it, as after training. Without, classes are called 0 to K-1 and
    have no training counts, so that all are few-shot; `oltr predict RUN` and `oltr evaluate RUN --source
    SOURCE` work. Nothing in the file is run: one that holds code is refused.

    Args:
        file: the checkpoint
        out: where the run goes
        source: the data that it was trained on, for class names and training counts; class k of the file is
            the k-th class of it (the released lists name classes by these numbers)
        recipe: how images are prepared; else imagenet-lt, places-lt or sun-lt by the number of classes, or
            photos-released
    """
    if not file.is_file():
        raise UserError(f"There is no file {file}.", try_this="a checkpoint of the released code")
    if root is not None and source is None:
        raise UserError("--root was given without a --source.", try_this="--source SOURCE --root DIR")

    from oltr.console import console
    from oltr.data.sources import read_source
    from oltr.runs.import_run import import_run as import_released

    manifest = None if source is None else read_source(source, root)
    if manifest is not None:
        console.notes(manifest.notes)
    report = import_released(file, out, manifest, recipe, source or "")
    if report is None and as_json:
        print_json({"run": str(out)})
    elif report is not None:
        print(report.to_json() if as_json else report.table().text(), end="" if as_json else "\n")
    console.say(f"run folder: {out}")
    if manifest is None:
        console.say("No --source: classes are called by their numbers, and all count as few-shot.")
