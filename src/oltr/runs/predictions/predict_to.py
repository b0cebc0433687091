"""Predictions of many images written to a file: rows as they come, resumable, then the form asked for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.console import console
from oltr.errors import UserError
from oltr.files import check_writable
from oltr.runs.named_images import NamedImages
from oltr.runs.parents import PRECISION
from oltr.runs.predict import COLUMNS, Asked, asked_of
from oltr.runs.predictions.bursts import Bursts, by_sequence, by_time
from oltr.runs.predictions.formats import Predictions, out_of, write_as
from oltr.runs.predictions.journal import Journal, Row
from oltr.runs.predictions.judge import cores_for_decoding, images_at_a_time, judged
from oltr.runs.predictions.sort_images import check_sort_folder, sort_images
from oltr.wording import count

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun


@dataclass(frozen=True)
class Wish:
    """What is to be done with the images, as it was asked for."""

    format: str = "csv"
    only: str | Path | Sequence[str] | None = None
    nearest: int = 0
    sequence: str | None = None  # a column of the table that names the images
    burst: float | None = None  # seconds
    sort: Path | None = None
    link: bool = False
    overwrite: bool = False
    parents: Path | None = None  # a table label,parent
    precision: float = PRECISION  # that answers keep at each of its levels


PLAIN = Wish()


@dataclass
class Summary:
    """What became of the images."""

    out: str
    images: int = 0
    known: int = 0
    unknown: int = 0
    failed: int = 0
    sorted: int = 0
    classes: Counter[str] = field(default_factory=Counter)

    def add(self, rows: list[Row]) -> None:
        for row in rows:
            self.images += 1
            self.failed += bool(row["error"])
            self.unknown += bool(row.get("unknown"))
            if not row["error"] and not row["unknown"]:
                self.known += 1
                self.classes[row["label"]] += 1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"classes": dict(self.classes.most_common())}


def predict_to(run: TrainedRun, images: NamedImages, out: Path | None = None, wish: Wish = PLAIN) -> Summary:
    """Judge the images and write the result to `out`; begun before, it goes on where it was."""
    out = out_of(wish.format, out)
    _check(out, images, wish)
    if wish.sort is not None:
        check_sort_folder(wish.sort, run)
    journal_file = out.with_name(f"{out.name}.part")
    if _there(out) and not wish.overwrite and not journal_file.exists():
        raise UserError(f"{out} is there already.", try_this="--overwrite, or another --out")
    asked = asked_of(run, wish.only, wish.nearest, wish.parents, wish.precision)
    bursts = _bursts(images, wish)
    images = images if bursts is None else bursts.images
    columns = _columns(asked, bursts)
    header = _header(run, images, asked, wish) | {"columns": list(columns)}
    journal = Journal(journal_file, header, anew=wish.overwrite)
    try:
        summary = _judge(run, images, asked, bursts, journal, str(out))
        if wish.sort is not None:
            summary.sorted = sort_images(
                journal.rows(), wish.sort.expanduser(), run.class_names, wish.link, len(images)
            )
        for stale in out.parent.glob(f".{_as_pattern(out.name)}.*.part"):  # what a killed command left
            stale.unlink(missing_ok=True)
        begun = journal.header["begun"]
        write_as(wish.format, Predictions(run, images, journal.rows, journal.batches, columns, begun), out)
        journal.remove()
    finally:
        journal.close()
    return summary


def _judge(
    run: TrainedRun, images: NamedImages, asked: Asked, bursts: Bursts | None, journal: Journal, out: str
) -> Summary:
    """Rows of all images in the journal, those that are not there yet judged."""
    summary = Summary(out)
    if journal.resumed:
        console.say(f"{count(journal.done, 'image')} judged before; going on from there")
        summary.add(list(journal.rows()))
    first = journal.done
    stream = judged(run, images, asked, bursts, journal.header["at_a_time"], first)
    with console.progress("predicting") as progress, cores_for_decoding(run.device):
        for rows in stream:
            rows = [row | {"model": run.model_version} for row in rows]
            journal.add(rows)
            summary.add(rows)
            progress(journal.done - first, len(images) - first)
    return summary


def _check(out: Path, images: NamedImages, wish: Wish) -> None:
    """Refuse before any work what cannot end well."""
    check_writable(out)
    if wish.sequence is not None and wish.burst is not None:
        raise UserError("--sequence and --burst were both given.", try_this="one of the two")
    if wish.link and wish.sort is None:
        raise UserError("--link was given without --sort.", try_this="--sort DIR --link")
    if wish.sort is not None:
        if images.pack is not None:
            raise UserError("--sort copies files; the images of a pack are none.", try_this="image files")
        if wish.sort.is_file():
            raise UserError(f"--sort {wish.sort} is a file.", try_this="a folder")
        check_writable(wish.sort)
    if out.is_dir() and wish.format != "camtrap-dp":
        raise UserError(f"--out {out} is a folder.", try_this=f"--out {out / 'predictions.csv'}")


def _there(out: Path) -> bool:
    return any(out.iterdir()) if out.is_dir() else out.exists()


def _bursts(images: NamedImages, wish: Wish) -> Bursts | None:
    if wish.sequence is not None:
        return by_sequence(images, wish.sequence)
    return None if wish.burst is None else by_time(images, wish.burst)


def _columns(asked: Asked, bursts: Bursts | None) -> dict[str, str]:
    columns = COLUMNS | {"model": "object", "top5": "object"} | asked.columns
    return columns | ({"sequence": "object"} if bursts is not None else {})


def _header(run: TrainedRun, images: NamedImages, asked: Asked, wish: Wish) -> Row:
    """All that rows depend on: a journal with another one is of other work."""
    digest = hashlib.blake2b("\0".join(images.paths).encode(), digest_size=16).hexdigest()
    return {
        "journal": 1,
        "model": run.model_version,
        "rule": [run.rule.score, run.rule.threshold],
        "images": [len(images), digest, str(images.pack or "")],
        "only": None if asked.allowed is None else asked.allowed.names,
        "nearest": wish.nearest,
        "thresholds": None if asked.rollup is None else [asked.rollup.parents.names, asked.rollup.thresholds],
        "sequence": wish.sequence,
        "burst": wish.burst,
        "at_a_time": images_at_a_time(run),
        "begun": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def _as_pattern(name: str) -> str:
    """A name as a pattern that it alone matches."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
