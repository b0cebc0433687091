"""Figures into files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.files import atomic_write

KINDS = (".png", ".svg", ".pdf")
# Same in, same out: the names inside an SVG are random unless salted, and vector formats carry the time.
SALT: dict[Any, Any] = {"svg.hashsalt": "oltr"}
TIMELESS = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF by its suffix, atomically."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise UserError(f"{path} is no name for a figure.", try_this=f"a name ending in {', '.join(KINDS)}")
    with atomic_write(path) as part, warnings.catch_warnings(), matplotlib.rc_context(SALT):
        # A class name in an alphabet that the font lacks is drawn as boxes; nobody can help it.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(part, format=kind[1:], dpi=150, bbox_inches="tight", metadata=TIMELESS.get(kind))
