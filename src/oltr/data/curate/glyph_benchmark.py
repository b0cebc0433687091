"""`oltr data curate glyphs`: the embedded set as ordinary image files."""

from __future__ import annotations

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.manifest import Manifest

SIZE = 32  # pixels


@CURATORS.register("glyphs")
def curate_glyphs(options: CurateOptions) -> Curated:
    """Characters of many scripts, long-tailed and open, drawn when needed."""
    from oltr.data.curate.glyphs import make_glyphs  # with matplotlib, which the other benchmarks do not need

    options.allow("glyphs", "size")
    size = SIZE if options.size is None else options.size
    glyphs = make_glyphs(size=size, seed=options.seed, progress=options.progress)
    table = glyphs.table.assign(path="images/" + glyphs.table["path"])
    return Curated(
        name="glyphs",
        manifest=Manifest.build(table, options.out),
        source="drawn from the fonts that come with matplotlib",
        recipe=(
            f"Characters of several scripts at {size} × {size} pixels, "
            "varied in font, size, rotation, shear, stroke, colour and background.",
            "Training counts follow Pareto(α = 6); val and test are balanced.",
            "The open split shows other characters.",
        ),
        seed=options.seed,
        pictures=dict(zip(table["path"], glyphs.images, strict=True)),
        pack_size=size,
    )
