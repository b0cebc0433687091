"""The figures of the catalogue as pictures inside a page, and as files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.save import SALT, save_figure
from oltr.report.catalogue import CATALOGUE, Entry
from oltr.report.loaded_run import LoadedRun
from oltr.report.page.data_uri import data_uri

NAMES_AS_THEY_ARE: dict[Any, Any] = {"text.parse_math": False}  # a name with two dollar signs is no formula
SVG_UP_TO = 250_000  # bytes; above it a PNG is smaller and shown sooner
PNG_DOTS, SCREEN = 144, 96  # per inch


@dataclass(frozen=True)
class Picture:
    """An entry of the catalogue with its picture, or with the reason why there is none."""

    entry: Entry
    source: str = ""  # a data URI
    kind: str = ""  # svg or png
    size: int = 0  # bytes
    width: int | None = None  # pixels on the screen; an SVG knows its own
    note: str = ""  # what it leaves out
    missing: UserError | None = None


def draw_pictures(
    runs: Sequence[LoadedRun], figures: Path | None = None, progress: Callable[[int, int], None] | None = None
) -> list[Picture]:
    """Every figure that can be made from runs; those made are also written as SVG and PNG into `figures`."""
    wanted = [entry for entry in CATALOGUE if entry.draw is not None]
    pictures = []
    with warnings.catch_warnings(record=True) as said:
        for entry in wanted:
            pictures.append(_picture(entry, runs, figures))
            if progress:
                progress(len(pictures), len(wanted))
    for message in dict.fromkeys(str(warning.message) for warning in said):
        warnings.warn(message)  # once, however many runs and figures have the same to say
    return pictures


def _picture(entry: Entry, runs: Sequence[LoadedRun], figures: Path | None) -> Picture:
    assert entry.draw is not None
    shown = runs if entry.choose is None else entry.choose(runs)
    with warnings.catch_warnings(), matplotlib.rc_context(NAMES_AS_THEY_ARE):
        # The page's text has every name; a font that lacks a letter of one is not worth a line each.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        try:
            figure = entry.draw(shown)
        except UserError as problem:
            return Picture(entry, missing=problem)
        if figures is not None:
            for kind in ("svg", "png"):
                save_figure(figure, figures / f"{entry.name}.{kind}")
        return as_picture(entry, figure, _note(shown, runs))


def _note(shown: Sequence[LoadedRun], runs: Sequence[LoadedRun]) -> str:
    """Which runs are to be seen, or which are not, whatever is shorter."""
    left_out = [run.name for run in runs if run not in shown]
    if not left_out:
        return ""
    if len(left_out) < len(shown):
        return f"Without {', '.join(left_out)}."
    return f"Of the {len(runs)} runs: {', '.join(run.name for run in shown)}."


def as_picture(entry: Entry, figure: Figure, note: str = "") -> Picture:
    """The figure as it stands in a page."""
    content, kind = _small(figure)
    # The header of a PNG has its width; on the screen text should be as large as in an SVG.
    width = int.from_bytes(content[16:20]) * SCREEN // PNG_DOTS if kind == "png" else None
    return Picture(entry, data_uri(content, kind), kind, len(content), width, note)


def _small(figure: Figure) -> tuple[bytes, str]:
    """SVG, which is sharp at any size, unless it is large."""
    with matplotlib.rc_context({**SALT, "svg.fonttype": "path"}):
        content = _saved(figure, "svg", metadata={"Date": None, "Creator": None})
    return (content, "svg") if len(content) <= SVG_UP_TO else (_saved(figure, "png", dpi=PNG_DOTS), "png")


def _saved(figure: Figure, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=kind, bbox_inches="tight", **options)  # type: ignore[arg-type]
    return file.getvalue()
