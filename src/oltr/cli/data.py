"""`oltr data ...`: look at data, pack it, make it long-tailed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from oltr.cli.options import SOURCE, GroupBy, Json, Root, SkipBroken, Source, print_json
from oltr.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from oltr.console import Console
    from oltr.data.curate import Curated
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
    root: Root = None,
    skip_broken: SkipBroken = False,
    as_json: Json = False,
) -> None:
    """Decode all images once to size × size pixels, into one file that is itself a source.

    Args:
        out: the file to write, ending in .pack
        size: side of the stored images, in pixels
    """
    from oltr.console import Console
    from oltr.data.broken import drop_broken, write_skipped
    from oltr.data.pack import check_pack_name, check_size, write_pack
    from oltr.data.sources import read_source
    from oltr.files import check_writable

    check_size(size)
    check_pack_name(out)
    check_writable(out)
    console, manifest = Console(), read_source(source, root)
    _refuse_pack(manifest, "packed again")
    if skip_broken:
        with console.progress("trying images") as progress:
            manifest = drop_broken(manifest, progress)
    console.notes(manifest.notes)
    with console.progress("packing") as progress:
        path = write_pack(manifest, size, out, progress)
    if manifest.skipped:
        listed = out.with_suffix(".skipped.txt")
        write_skipped(manifest.skipped, listed)
        console.say(f"all that were left out: {listed}")
    images, length = len(manifest.table), path.stat().st_size
    if as_json:
        print_json({"out": str(path), "images": images, "size": size, "bytes": length})
    else:
        print(f"{path}: {images:,} images of {size} px, {max(length / 2**20, 0.1):,.1f} MiB")


def longtail(
    source: Source,
    out: Path,
    alpha: float | None = None,
    imbalance: float | None = None,
    largest: Annotated[int | None, tyro.conf.arg(name="max")] = None,
    smallest: Annotated[int, tyro.conf.arg(name="min")] = 5,
    open_classes: Annotated[float, tyro.conf.arg(name="open")] = 0.2,
    seed: int = 0,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Make a labelled set long-tailed and open, as the paper's benchmarks are; images stay where they are.

    Args:
        out: the folder to write manifest.csv and card.md to
        alpha: Pareto tail of the class sizes; 6, as in the paper, unless given
        imbalance: instead of alpha, an exponential profile: largest class over smallest
        largest: images of the largest class; the most there are unless given
        smallest: images of the smallest class
        open_classes: classes left out of training as unknown: a share below 1, or a number
        seed: decides which images and which open classes
    """
    from oltr.console import Console
    from oltr.data.curate import Curated
    from oltr.data.curate.write import check_out, write_curation
    from oltr.data.make_longtail import make_longtail
    from oltr.data.sources import read_source

    if alpha is None and imbalance is None:
        alpha = 6.0
    check_out(out, "longtail")
    if out.expanduser().resolve().is_relative_to(Path(source).expanduser().resolve()):
        raise UserError(
            f"The folder {out} lies in the source.",
            "What lies in a source is taken for a part of it.",
            "--out with a folder beside it",
        )
    # Flat folders stay undivided: make_longtail takes a balanced test split itself.
    original = read_source(source, root, flat="train")
    _refuse_pack(original, "made long-tailed")
    manifest = make_longtail(
        original,
        alpha=alpha,
        imbalance=imbalance,
        largest=largest,
        smallest=smallest,
        open_classes=open_classes,
        seed=seed,
    )
    profile = f"Pareto, α = {alpha:g}" if imbalance is None else f"exponential, imbalance {imbalance:g}"
    curated = Curated("longtail", manifest, source, (f"{profile}.", *manifest.notes), seed)
    write_curation(curated, out, draw=draw_classes)
    _tell(curated, out, as_json, Console())


def curate(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    out: Path,
    root: Path | None = None,
    lists: Path | None = None,
    index: Path | None = None,
    order: Path | None = None,
    open_root: Path | None = None,
    imbalance: float | None = None,
    alpha: float | None = None,
    size: int | None = None,
    pack: bool = False,
    verify: bool = False,
    seed: int = 0,
    as_json: Json = False,
) -> None:
    """Make a benchmark: manifest.csv and card.md in a folder; images are referenced, not copied.

    Args:
        name: imagenet-lt, places-lt, ms1m-lt, sun-lt, cifar100-lt, cifar10-lt, cifar100-tinyimagenet,
            inaturalist18 or glyphs
        out: the folder to write
        root: the original images: a folder, or an archive where they come in one
        lists: the folder of the released lists: exactly those images
        index: a file with one relative path per line, instead of scanning the root; no file is looked at
        order: which classes are large: one per line, largest first, or a file that says so otherwise
            (imagenet-lt, places-lt)
        open_root: images of no known class, for the open test set
        imbalance: largest class over smallest (cifar100-lt, cifar10-lt; usual are 100, 50 and 10)
        alpha: a Pareto profile instead of an exponential one (cifar100-lt, cifar10-lt)
        size: pixels a side, of drawn pictures (glyphs) and of the pack
        pack: also write OUT.pack, ready for training
        verify: open every image afterwards
        seed: decides what is drawn at random
    """
    from oltr.console import Console
    from oltr.data.curate import CurateOptions
    from oltr.data.curate import curate as make
    from oltr.data.pack import write_pack
    from oltr.data.sources import read_source

    console, out = Console(), out.expanduser()
    with console.progress(f"curating {name}") as progress:
        options = CurateOptions(
            out, root, lists, index, order, open_root, imbalance, alpha, size, seed, progress
        )
        curated = make(name, options, draw_classes)
    if pack:
        path = out.absolute().with_name(f"{out.absolute().name}.pack")
        try:
            with console.progress("packing") as progress:
                write_pack(read_source(out), curated.pack_size, path, progress)
        except UserError as error:
            raise UserError(
                f"{out} was written, its pack was not. {error.what}", error.why, error.try_this
            ) from None
        console.say(f"packed into {path}")
    _tell(curated, out, as_json, console)
    if verify:
        from oltr.data.check import check as check_images

        report = check_images(read_source(out))
        console.say("\n".join(report.lines()))
        # Twins in train and test, which CIFAR-100 itself has, are told but do not fail.
        if any(problem.kind != "duplicates_across_splits" for problem in report.problems):
            raise UserError(f"{out} was written, but not all of its images are sound.")


def draw_classes(counts: np.ndarray, path: Path, shots: Shots = "standard") -> None:
    """Training images per class as a figure."""
    from oltr.figures.distribution import class_distribution
    from oltr.figures.save import save_figure

    save_figure(class_distribution(counts, shots), path)


def _refuse_pack(manifest: Manifest, wish: str) -> None:
    """Some verbs need the image files themselves."""
    if manifest.pack is not None:
        raise UserError(
            f"{manifest.pack.name} is a pack and cannot be {wish}.",
            "It holds pixels, not the image files.",
            "the source that it was made from",
        )


def _tell(curated: Curated, out: Path, as_json: bool, console: Console) -> None:
    """The facts of a new set, beside the published ones where there are any."""
    from oltr.data.curate.card import fact_rows
    from oltr.data.stats import stats as manifest_stats

    console.notes(curated.manifest.notes)
    if as_json:
        print_json(
            manifest_stats(curated.manifest)
            | {"out": str(out), "published": curated.published, "remarks": list(curated.remarks)}
        )
        return
    for fact, ours, published in fact_rows(curated):
        print(f"{fact:<30} {ours:>9,}" + (f"   (published: {published:,})" if published is not None else ""))
    print("".join(f"{remark}\n" for remark in curated.remarks), end="")
    print(f"written to {out}")
