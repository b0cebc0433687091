"""`oltr explain`: why a run names an image as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.options import Json, Root, Run, Score, print_json
from oltr.errors import UserError


def explain(
    run: Run,
    image: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IMAGE", help="an image file")],
    out: Path | None = None,
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE")] = None,
    root: Root = None,
    score: Score = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    as_json: Json = False,
) -> None:
    """Prediction, unknown or not and why, nearest classes, infused concepts and attention, as one picture.

    Args:
        out: where the picture goes: .png, .svg or .pdf; in RUN/explain, named after IMAGE, unless given
        source: where the images that the run was trained on are now, if they have moved
        score: what tells unknown images, instead of the run's own rejection rule
        threshold: where the score divides known from unknown
        unknown_rate: instead, choose it such that at most this share of known validation images is rejected
    """
    from oltr.figures.explanation_figure import explanation_figure
    from oltr.figures.save import KINDS, save_figure
    from oltr.runs.explain.explain import explain as explained
    from oltr.runs.explain.text import explanation_text
    from oltr.runs.given_images import checked_name
    from oltr.runs.trained_run import TrainedRun

    if root is not None and source is None:
        raise UserError("--root was given without a --source.", try_this="--source SOURCE --root DIR")
    image = checked_name(image.expanduser())
    if out is not None and out.suffix.lower() not in KINDS:  # before the work, not after it
        raise UserError(f"--out {out} is no name for a picture.", try_this=f"one of: {', '.join(KINDS)}")
    opened = TrainedRun(run, source, root)
    told = explained(opened.under(opened.other_rule(score, threshold, unknown_rate)), image)
    picture = out or run / "explain" / f"{_named_after(image)}.png"
    save_figure(explanation_figure(told), picture)
    if as_json:
        print_json({**told.to_dict(), "picture": str(picture)})
    else:
        print(f"{explanation_text(told)}\npicture: {picture}")


def _named_after(image: Path) -> str:
    """All of the path as it was given: cameras give every folder an IMG_0001, some as .jpg and .png."""
    return "-".join(part for part in image.parts if part.strip("./\\:"))
