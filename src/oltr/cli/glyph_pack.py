"""The embedded set, drawn once for the verbs that need no data of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oltr.console import Console


def draw_glyphs(out: Path, seed: int, console: Console, each: int | None = None) -> Path:
    """The glyphs as a pack in `out`, long-tailed or `each` of every class, with a picture; drawn once."""
    from oltr.data.curate.glyphs import make_glyphs
    from oltr.data.manifest import Manifest
    from oltr.data.pack import write_pack_from
    from oltr.figures.contact_sheet import contact_sheet
    from oltr.files import atomic_write

    path = out / (f"glyphs-{seed}.pack" if each is None else f"glyphs-{seed}-{each}-each.pack")
    if path.is_file():
        return path
    with console.progress("drawing glyphs") as progress:
        sizes: dict[str, Any] = {} if each is None else {"largest": each, "smallest": each}
        glyphs = make_glyphs(seed=seed, progress=progress, **sizes)
    some = glyphs.images[:: max(len(glyphs.images) // 200, 1)][:200]
    with atomic_write(out / "glyphs.png") as part:
        contact_sheet(some, columns=20).save(part, format="PNG")
    return write_pack_from(Manifest.build(glyphs.table, out), glyphs.images, glyphs.images.shape[1], path)
