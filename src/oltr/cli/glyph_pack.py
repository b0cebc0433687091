"""The embedded set, drawn once for the verbs that need no data of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oltr.engine.console import Console


def draw_glyphs(out: Path, seed: int, console: Console) -> Path:
    """The glyphs as a pack in `out`, and a picture of some of them; drawn once."""
    from oltr.analysis.contact_sheet import contact_sheet
    from oltr.data.curate.glyphs import make_glyphs
    from oltr.data.manifest import Manifest
    from oltr.data.store import write_pack_from
    from oltr.files import whole

    path = out / f"glyphs-{seed}.pack"
    if path.is_file():
        return path
    with console.progress("drawing glyphs") as progress:
        glyphs = make_glyphs(seed=seed, progress=progress)
    some = glyphs.images[:: max(len(glyphs.images) // 200, 1)][:200]
    with whole(out / "glyphs.png") as part:
        contact_sheet(some, columns=20).save(part, format="PNG")
    return write_pack_from(Manifest.build(glyphs.table, out), glyphs.images, glyphs.images.shape[1], path)
