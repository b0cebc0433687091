"""`oltr data check`, `stats` and `pack`: look at data, and pack it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from oltr.cli.options import SOURCE, GroupBy, Json, Root, SkipBroken, Source, print_json
from oltr.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from oltr.data.manifest import Manifest

Shots = Literal["standard", "released"]


def check(source: Source, group_by: GroupBy = None, root: Root = None, as_json: Json = False) -> int:
    """Open every image and say what would stop or spoil training; exit code 2 if anything would.

    Near-duplicates are warnings. With --group-by, groups in more than one split are a problem.
    """
    from oltr.console import Console
    from oltr.data.check import check as check_images
    from oltr.data.group_split import regrouped
    from oltr.data.groups import find_groups, straddling
    from oltr.data.sources import read_source
    from oltr.data.validate import class_notes
    from oltr.wording import count

    console, manifest = Console(), read_source(source, root)
    groups = None if group_by is None else find_groups(manifest, group_by)
    if groups is not None and manifest.split_made:
        manifest = regrouped(manifest, groups)
    elif groups is not None:
        torn = len(straddling(manifest, groups))
        console.say(f"{count(len(groups), 'group')} of {group_by}, {torn:,} in more than one split.")
    in_report = class_notes(manifest.table, manifest.classes)  # the report has its own words for these
    console.notes(note for note in manifest.notes if note not in in_report)
    report = check_images(manifest, groups=groups)
    if as_json:
        print_json(report.to_json())
    else:
        print("\n".join(report.lines()))
    return 2 if report.problems else 0


def stats(
    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help=SOURCE)] = None,
    counts: Path | None = None,
    shots: Shots = "standard",
    figure: Path | None = None,
    group_by: GroupBy = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Images, classes and shot groups; no image is opened, but for --group-by near-duplicates.

    Args:
        counts: instead of a source, a JSON array of training images per class
        shots: where the shot groups end: >100 / 20–100 / <20, or the released code's ≥100 / 21–99 / ≤20
        figure: draw the class distribution into this file (.png, .svg, .pdf)
    """
    from oltr.console import Console
    from oltr.data.curate.published import recognised
    from oltr.data.sources import read_source
    from oltr.data.stats import read_counts, stats_from_counts
    from oltr.data.stats import stats as manifest_stats

    if (source is None) == (counts is None):
        raise UserError("Give a source or --counts FILE, one of the two.", try_this="oltr data stats photos/")
    if counts is not None:
        class_counts = read_counts(counts)
        facts = stats_from_counts(class_counts, shots)
    else:
        manifest = read_source(str(source), root)
        if group_by is not None:
            from oltr.data.group_split import split_by_group

            manifest = split_by_group(manifest, group_by)
        Console().notes(manifest.notes)
        class_counts, facts = manifest.train_counts(), manifest_stats(manifest, shots)
    if figure is not None:
        draw_classes(class_counts, figure, shots)
    if as_json:
        print_json(facts)
        return
    from oltr.report.bars import distribution_bars

    print("images   " + ", ".join(f"{split} {n:,}" for split, n in facts["images"].items()))
    print(f"classes  {facts['classes']:,}, {facts['max']:,} to {facts['min']:,} training images each")
    print("shots    " + ", ".join(f"{group} {n:,}" for group, n in facts["shots"].items()) + f" ({shots})")
    print(distribution_bars(class_counts))
    if known := recognised(facts):
        print(f"same as  {known.title} (training images and classes)")
        print("\n".join(known.remarks), end="\n" if known.remarks else "")
    if figure is not None:
        print(f"figure   {figure}")


def pack(
    source: Source,
    out: Path,
    size: int = 256,
    resize: Literal["stretch", "crop", "short-side"] = "stretch",
    root: Root = None,
    skip_broken: SkipBroken = False,
    as_json: Json = False,
) -> None:
    """Decode all images once to size × size pixels, into one file that is itself a source.

    Args:
        out: the file to write, ending in .pack
        size: side of the stored images, in pixels
        resize: how a picture becomes a square: stretched; cut to its middle; or the same in whole pixels, as
            imagenet-lt, places-lt and sun-lt want it
    """
    from oltr.config import Frame
    from oltr.console import Console
    from oltr.data.broken import drop_broken, write_skipped
    from oltr.data.pack import check_pack_name, check_size, write_pack
    from oltr.data.sources import read_source
    from oltr.files import check_writable

    check_size(size)
    check_pack_name(out)
    check_writable(out)
    console, manifest = Console(), read_source(source, root)
    refuse_pack(manifest, "packed again")
    if skip_broken:
        with console.progress("trying images") as progress:
            manifest = drop_broken(manifest, progress)
    console.notes(manifest.notes)
    with console.progress("packing") as progress:
        path = write_pack(manifest, Frame(size, resize), out, progress)
    if manifest.skipped:
        listed = out.with_suffix(".skipped.txt")
        write_skipped(manifest.skipped, listed)
        console.say(f"all that were left out: {listed}")
    images, length = len(manifest.table), path.stat().st_size
    if as_json:
        print_json({"out": str(path), "images": images, "size": size, "resize": resize, "bytes": length})
    else:
        print(f"{path}: {images:,} images of {size} px, {max(length / 2**20, 0.1):,.1f} MiB")


def draw_classes(counts: np.ndarray, path: Path, shots: Shots = "standard") -> None:
    """Training images per class as a figure."""
    from oltr.figures.distribution import class_distribution
    from oltr.figures.save import save_figure

    save_figure(class_distribution(counts, shots), path)


def refuse_pack(manifest: Manifest, wish: str) -> None:
    """Some verbs need the image files themselves."""
    if manifest.pack is not None:
        raise UserError(
            f"{manifest.pack.name} is a pack and cannot be {wish}.",
            "It holds pixels, not the image files.",
            "the source that it was made from",
        )
