"""`oltr data longtail` and `curate`: sets made from others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from oltr.cli.data import draw_classes, refuse_pack
from oltr.cli.options import Json, Root, Source, print_json
from oltr.errors import UserError

if TYPE_CHECKING:
    from oltr.console import Console
    from oltr.data.curate import Curated


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
    refuse_pack(original, "made long-tailed")
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
    open_images: Literal["resized", "nearest", "crop"] | None = None,
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
        name: imagenet-lt, places-lt, ms1m-lt, sun-lt, cifar100-lt, cifar10-lt, cifar100-lt-development,
            cifar100-tinyimagenet, inaturalist18 or glyphs
        out: the folder to write
        root: the original images: a folder, or an archive where they come in one
        lists: the folder of the released lists: exactly those images
        index: a file with one relative path per line, instead of scanning the root; no file is looked at
        order: which classes are large: one per line, largest first, or a file that says so otherwise
            (imagenet-lt, places-lt)
        open_root: images of no known class, for the open test set
        open_images: how they are made from 64 px originals, as published sets were (cifar100-tinyimagenet):
            bilinear without antialiasing, nearest pixels, or random crops; else they are taken as they are
        imbalance: largest class over smallest (long-tailed CIFAR sets; usual are 100, 50 and 10)
        alpha: a Pareto profile instead of an exponential one (cifar100-lt, cifar10-lt)
        size: pixels a side, of drawn pictures (glyphs) and of the pack
        pack: also write OUT.pack, ready for training
        verify: open every image afterwards
        seed: decides what is drawn at random
    """
    from oltr.config import Frame
    from oltr.console import Console
    from oltr.data.curate import CurateOptions
    from oltr.data.curate import curate as make
    from oltr.data.pack import write_pack
    from oltr.data.sources import read_source

    console, out = Console(), out.expanduser()
    with console.progress(f"curating {name}") as progress:
        options = CurateOptions(
            out, root, lists, index, order, open_root, imbalance, alpha, size, seed, progress, open_images
        )
        curated = make(name, options, draw_classes)
    if pack:
        path = out.absolute().with_name(f"{out.absolute().name}.pack")
        try:
            with console.progress("packing") as progress:
                frame = Frame(curated.pack_size, curated.pack_resize)
                write_pack(read_source(out), frame, path, progress)
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
