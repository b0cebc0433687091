"""Figures of runs as pictures inside a page, and as files."""

from __future__ import annotations

import base64
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from oltr.console import console
from oltr.errors import UserError
from oltr.figures.choose_runs import Runs
from oltr.figures.figure import RunFigure, all_figures
from oltr.figures.save import SALT, save_figure

NAMES_AS_THEY_ARE: dict[Any, Any] = {"text.parse_math": False}  # a name with two dollar signs is no formula
SVG_UP_TO = 250_000  # bytes; above it a PNG is smaller and shown sooner
PNG_DOTS, SCREEN = 144, 96  # per inch
_TYPES = {"svg": "image/svg+xml", "png": "image/png", "webp": "image/webp"}


@dataclass(frozen=True)
class Picture:
    """A figure's picture, or the reason why there is none."""

    figure: RunFigure
    source: str = ""  # a data URI
    kind: str = ""  # svg or png
    size: int = 0  # bytes
    width: int | None = None  # pixels on the screen; an SVG knows its own
    note: str = ""  # what it leaves out
    missing: UserError | None = None


def draw_pictures(runs: Runs, folder: Path | None = None) -> list[Picture]:
    """Every figure that can be made from runs; those made are also written as SVG and PNG into `folder`."""
    wanted = [figure for figure in all_figures() if figure.draw is not None]
    pictures = []
    with (
        console.progress("drawing", "figures") as progress,
        warnings.catch_warnings(record=True) as said,
    ):
        for figure in wanted:
            pictures.append(_picture(figure, runs, folder))
            progress(len(pictures), len(wanted))
    for message in dict.fromkeys(str(warning.message) for warning in said):
        warnings.warn(message)  # once, however many runs and figures have the same to say
    return pictures


def _picture(figure: RunFigure, runs: Runs, folder: Path | None) -> Picture:
    assert figure.draw is not None
    with warnings.catch_warnings(), matplotlib.rc_context(NAMES_AS_THEY_ARE):
        # The page's text has every name; a font that lacks a letter of one is not worth a line each.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        try:
            shown = figure.choose(runs)
            drawn = figure.draw(shown)
        except UserError as problem:
            return Picture(figure, missing=problem)
        if folder is not None:
            for kind in ("svg", "png"):
                save_figure(drawn, folder / f"{figure.name}.{kind}")
        return as_picture(figure, drawn, _note(shown, runs))


def _note(shown: Runs, runs: Runs) -> str:
    """Which runs are to be seen, or which are not, whatever is shorter."""
    left_out = [run.name for run in runs if run not in shown]
    if not left_out:
        return ""
    if len(left_out) < len(shown):
        return f"Not shown: {', '.join(left_out)}."
    return f"Shown of {len(runs)} runs: {', '.join(run.name for run in shown)}."


def as_picture(figure: RunFigure, drawn: Figure, note: str = "") -> Picture:
    """The figure as it stands in a page."""
    content, kind = _small(drawn)
    # The header of a PNG has its width; on the screen text should be as large as in an SVG.
    width = int.from_bytes(content[16:20]) * SCREEN // PNG_DOTS if kind == "png" else None
    return Picture(figure, data_uri(content, kind), kind, len(content), width, note)


def data_uri(content: bytes, kind: str) -> str:
    """The bytes of a picture as an address that holds them.

    >>> data_uri(b"<svg/>", "svg")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:{_TYPES[kind]};base64,{base64.b64encode(content).decode()}"


def _small(figure: Figure) -> tuple[bytes, str]:
    """SVG, which is sharp at any size, unless it is large."""
    with matplotlib.rc_context({**SALT, "svg.fonttype": "path"}):
        content = _saved(figure, "svg", metadata={"Date": None, "Creator": None})
    return (content, "svg") if len(content) <= SVG_UP_TO else (_saved(figure, "png", dpi=PNG_DOTS), "png")


def _saved(figure: Figure, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=kind, bbox_inches="tight", **options)  # type: ignore[arg-type]
    return file.getvalue()
