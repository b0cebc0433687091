"""Figures into files."""

from __future__ import annotations

import warnings
from pathlib import Path

from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.files import whole

KINDS = (".png", ".svg", ".pdf")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF by its suffix, whole or not at all."""
    if path.suffix.lower() not in KINDS:
        raise UserError(f"{path} is no name for a figure.", try_this=f"a name ending in {', '.join(KINDS)}")
    with whole(path) as part, warnings.catch_warnings():
        # A class name in an alphabet that the font lacks is drawn as boxes; nobody can help it.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(part, format=path.suffix[1:].lower(), dpi=150, bbox_inches="tight")
