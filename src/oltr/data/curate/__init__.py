"""Benchmarks made by one command each: `curate(name, options)`."""

from __future__ import annotations

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.cifar_lt import curate_cifar100_lt
from oltr.data.curate.glyph_benchmark import curate_glyphs
from oltr.data.curate.write import check_out, write_curation

__all__ = ["CURATORS", "CurateOptions", "Curated", "curate", "curate_cifar100_lt", "curate_glyphs"]


def curate(name: str, options: CurateOptions) -> Curated:
    """Make a benchmark and write its manifest, card and pictures to `options.out`."""
    curator = CURATORS[name]
    check_out(options.out, name)
    curated = curator(options)
    write_curation(curated, options.out, options.progress)
    return curated
