"""`oltr predict` and `oltr rescore`: answers for images, and which of them have changed since."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from oltr.cli.options import Images, Json, Root, Run, print_json
from oltr.errors import UserError

Only = Annotated[str | None, tyro.conf.arg(metavar="LIST")]


def predict(
    run: Run,
    images: Images,
    out: Path | None = None,
    format: Literal["csv", "timelapse", "camtrap-dp", "coco"] = "csv",
    only: Only = None,
    nearest: int = 0,
    parents: Annotated[Path | None, tyro.conf.arg(metavar="TABLE")] = None,
    precision: float | None = None,
    sequence: Annotated[str | None, tyro.conf.arg(metavar="COLUMN")] = None,
    burst: Annotated[float | None, tyro.conf.arg(metavar="SECONDS")] = None,
    sort: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    link: bool = False,
    overwrite: bool = False,
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE")] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Name every image, or call it unknown; a table of answers, and the images sorted into folders.

    Stopped at any moment, the same command goes on where it was. An image that cannot be read is a row with
    the reason.

    Args:
        out: predictions.csv unless given; .parquet or .json by its ending
        format: what others read instead: Timelapse (MegaDetector's JSON), Camtrap DP (a folder), COCO
        only: classes that can occur at the place: names with commas between, or a text file with one a line
        nearest: also name so many training images that look most like it
        parents: CSV with columns label and parent (genus, family): where the class is unsure and its parent
            is not, the answer is the parent, in columns `answer`, `answer_level`, `answer_probability`
        precision: share of answers that must be right at each level, on validation images; 0.95 unless given
        sequence: judge images together that have the same value in this column of the table that names them
        burst: judge photos of one folder together that are at most so many seconds apart, by their EXIF times
        sort: copy the images into folders named after their classes, and unknown/
        link: with --sort, symbolic links instead of copies
        overwrite: replace a result that is there
        source: where the images that the run was trained on are now, if they have moved (for --nearest)
    """
    from oltr.runs.named_images import named_images
    from oltr.runs.parents import PRECISION
    from oltr.runs.predictions.predict_to import Wish, predict_to
    from oltr.runs.trained_run import TrainedRun
    from oltr.wording import count

    if root is not None and source is None:
        raise UserError("--root was given without a --source.", try_this="--source SOURCE --root DIR")
    if nearest < 0:
        raise UserError(f"--nearest {nearest} is negative.", try_this="--nearest 3")
    if precision is not None and parents is None:
        raise UserError("--precision was given without --parents.", try_this="--parents TABLE")
    opened = TrainedRun(run, source, root)
    keeps = PRECISION if precision is None else precision
    wish = Wish(format, only, nearest, sequence, burst, sort, link, overwrite, parents, keeps)
    summary = predict_to(opened, named_images(images), out, wish)
    if as_json:
        print_json(summary.to_dict())
        return
    failed = f", {summary.failed:,} failed (column `error`)" if summary.failed else ""
    known, unknown = f"{summary.known:,} known", f"{summary.unknown:,} unknown"
    print(f"{count(summary.images, 'image')}: {known}, {unknown}{failed}\n{summary.out}")
    if sort is not None:
        print(f"{count(summary.sorted, 'image')} {'linked' if link else 'copied'} into {sort}")


def rescore(
    run: Run,
    predictions: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="PREDICTIONS", help="a file that predict wrote")
    ],
    out: Path | None = None,
    only: Only = None,
    all: bool = False,
    as_json: Json = False,
) -> None:
    """Judge the images of an earlier predictions file again, and list every answer that has changed.

    Args:
        out: write the changes as CSV
        only: classes that can occur at the place, as for predict
        all: judge rows of the run's present state again, too, e.g. after a change of its rejection rule
    """
    from oltr.runs.predictions.rescore import rescore as rescored
    from oltr.runs.trained_run import TrainedRun

    found = rescored(TrainedRun(run), predictions, only, all)
    if out is not None:
        found.write(out)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found.text() + (f"\n{out}" if out is not None else ""))
