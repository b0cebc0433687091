"""Benchmarks made by one command each: `curate(name, options)`."""

from __future__ import annotations

from oltr.data.curate import (  # noqa: F401 - each registers its benchmark
    cifar100_development,
    cifar100_tinyimagenet,
    cifar_lt,
    glyph_benchmark,
    imagenet_lt,
    inaturalist18,
    ms1m_lt,
    places_lt,
    sun_lt,
)
from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.write import Draw, check_out, write_curation

__all__ = ["CURATORS", "CurateOptions", "Curated", "curate"]


def curate(name: str, options: CurateOptions, draw: Draw | None = None) -> Curated:
    """Make a benchmark and write its manifest, card, pictures and, with `draw`, figure to `options.out`."""
    curator = CURATORS[name]
    check_out(options.out, name)
    curated = curator(options)
    write_curation(curated, options.out, options.progress, draw)
    return curated
