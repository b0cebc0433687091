"""The training images of a source drawn anew for every α, so that nothing but the imbalance differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from oltr.data.make_longtail import make_longtail
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack_from
from oltr.data.sources import read_source
from oltr.errors import UserError

SMALLEST = 5  # images of the smallest class, as in the paper's benchmarks


def longtail_sets(full: Manifest, alphas: Sequence[float]) -> dict[float, Manifest]:
    """α → its set, the smallest first; their largest and smallest class have equally many images in all.

    Every set is drawn from that of the largest α, in which no class is smaller: so val, test and open images
    are the same in all, and nothing that one of them trains on is held out in another.
    """
    flattest = max(alphas)
    flat = make_longtail(full, alpha=flattest, smallest=SMALLEST)
    largest = int(flat.train_counts().max())
    sets = {
        alpha: make_longtail(flat, alpha=alpha, smallest=SMALLEST, largest=largest)
        for alpha in sorted({*alphas} - {flattest})
    }
    return {**sets, flattest: flat}


def kept_set(full: Manifest, drawn: Manifest, folder: Path) -> str:
    """The set as a source in `folder`, written once: a manifest, or a pack of its own from a full pack."""
    path = folder / ("manifest.csv" if full.pack is None else "images.pack")
    if path.is_file():
        if read_source(path).fingerprint() != drawn.fingerprint():
            raise UserError(f"{path} was drawn from other data.", try_this="the old source, or another --out")
    elif full.pack is None:
        drawn.write(path)
    else:
        pack = open_pack(full.pack)
        rows = pd.Index(full.table["path"]).get_indexer(pd.Index(drawn.table["path"]))
        write_pack_from(drawn, (pack.images[row] for row in rows), pack.size, path)
    return str(path)
