"""`oltr discover`: unknown images in clusters, to be named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.options import Images, Json, Run, print_json
from oltr.errors import UserError


def discover(
    run: Run,
    images: Images,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")],
    everything: Annotated[bool, tyro.conf.arg(name="all")] = False,
    as_json: Json = False,
) -> None:
    """Cluster the images that a run calls unknown, show them, and say which to label first.

    DIR gets clusters.csv (an image per row: its cluster, its rank in it, when to label it, the nearest known
    class), clusters.json and index.html, one page to look at.

    Args:
        out: the folder for the result
        everything: cluster all images, those of known classes too
    """
    from oltr.console import console
    from oltr.files import check_writable
    from oltr.openworld.discover import discover as discovered
    from oltr.openworld.page import headline
    from oltr.openworld.write import write_result
    from oltr.runs.named_images import named_images
    from oltr.runs.trained_run import TrainedRun

    check_writable(out / "index.html")
    opened, named = TrainedRun(run), named_images(images)
    if named.pack is not None:
        raise UserError(
            "The images of a pack are no files, which could be shown and named.", try_this="the files"
        )
    found = discovered(opened, [Path(path) for path in named.paths], everything)
    for path, reason in list(found.errors.items())[:5]:
        console.warn(f"{path}: {reason}")
    write_result(found, opened, out)
    if as_json:
        print_json(found.to_dict())
        return
    print(headline(found))
    for cluster in sorted(found.clusters, key=lambda each: each.label_first)[:20]:
        near = cluster.looks_known and f"may be {cluster.looks_known}"
        near = near or f"nearest known: {cluster.nearest[0].name}"
        print(f"  cluster {cluster.number}: {cluster.size:,} images, {near}; e.g. {cluster.paths[0]}")
    print(f"page: {out / 'index.html'}")
