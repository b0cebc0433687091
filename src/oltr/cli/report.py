"""`oltr report`: a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from oltr.cli.options import By, Json, print_json
from oltr.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oltr.report.page.pictures import Picture


def report(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN [RUN ...]")] = (),
    out: Path | None = None,
    figures: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    by: By = (),
    as_json: Json = False,
) -> None:
    """One HTML page of a run, or of several side by side: verdict, table, figures, classes, worst images.

    It is a single file that loads nothing. Figures that cannot be made say why in their place. Of a run whose
    data have no test images there is no page, but with --figures the figures that need none.

    Args:
        runs: run folders with the same classes; differences and gains are over `plain`, else over the first
        out: the page; RUN/report.html of one run, report.html here of several, unless given
        figures: also write every figure there, as SVG and PNG
        by: also accuracy by a column of the data (site, camera, sex ...), or by folder; may be repeated
    """
    if not runs:
        raise UserError("No run folder was given.", try_this="oltr report runs/a")
    page = out or (runs[0] / "report.html" if len(set(runs)) == 1 else Path("report.html"))
    if page.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{page} is no name for a page.", try_this=f"--out {page.with_suffix('.html')}")
    if page.is_dir():
        raise UserError(f"{page} is a folder.", try_this=f"--out {page / 'report.html'}")
    if figures is not None and figures.exists() and not figures.is_dir():
        raise UserError(f"--figures {figures} is a file.", try_this="a folder for the figures")

    from oltr.console import console
    from oltr.report.page.pictures import draw_pictures
    from oltr.report.page.runs import untested_runs
    from oltr.report.page.write import write_page
    from oltr.wording import count

    untested = untested_runs(runs) if figures is not None else []
    pictures = draw_pictures(untested, figures) if untested else write_page(runs, page, figures, by)
    if as_json:
        print_json(_answer(None if untested else page, pictures, figures))
        return
    for picture in pictures:
        if picture.missing is not None:
            console.say(f"no figure {picture.figure.name}: {picture.missing.what}")
    if figures is not None:
        made = sum(picture.missing is None for picture in pictures)
        console.say(f"{count(made, 'figure')}, each as SVG and PNG: {figures}")
    if untested:
        console.say("no page: the data have no test images, so there are no numbers")
    else:
        print(f"{page} ({page.stat().st_size / 1e6:.1f} MB)")


def _answer(page: Path | None, pictures: Sequence[Picture], figures: Path | None) -> dict[str, Any]:
    """What was written, its sizes, and what is missing."""
    made = [picture for picture in pictures if picture.missing is None]
    names = [f"{picture.figure.name}.{kind}" for picture in made for kind in ("svg", "png")]
    return {
        "page": None if page is None else str(page),
        "bytes": 0 if page is None else page.stat().st_size,
        "figures": {picture.figure.name: {"kind": picture.kind, "bytes": picture.size} for picture in made},
        "missing": {picture.figure.name: str(picture.missing) for picture in pictures if picture.missing},
        "figure_files": [] if figures is None else [str(figures / name) for name in names],
    }
