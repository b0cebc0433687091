"""Earlier predictions beside those of the run as it is now."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from oltr.console import console
from oltr.data.images import NO_FILE
from oltr.data.sources import read_table
from oltr.errors import UserError
from oltr.files import atomic_write
from oltr.runs.model_version import same_weights
from oltr.runs.named_images import TABLES, NamedImages, named_images
from oltr.runs.predict import asked_of
from oltr.runs.predictions.bursts import by_sequence
from oltr.runs.predictions.judge import judged
from oltr.wording import count, first_few

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

UNKNOWN, FAILED = "unknown", "failed"
SHOWN = 20  # changes on the screen
NEEDED = ("path", "label", "probability", "unknown", "error", "model")


@dataclass(frozen=True)
class Change:
    """An image with another answer than before: a class, "unknown" or "failed", and the likeliest class."""

    path: str
    before: str
    after: str
    likeliest_before: str
    likeliest_after: str
    probability_before: float | None
    probability_after: float | None


@dataclass(frozen=True)
class Rescored:
    """What has changed, of how many."""

    images: int
    same_model: int  # rows of the run's present state, which were not judged again
    changed: list[Change] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, out: Path) -> None:
        """The changes as CSV."""
        columns = list(Change.__dataclass_fields__)
        with atomic_write(out) as part:
            pd.DataFrame([asdict(each) for each in self.changed], columns=columns).to_csv(part, index=False)

    def text(self) -> str:
        """A few lines for the screen."""
        if self.same_model == self.images:
            return f"{count(self.images, 'row')} of the run as it is now: nothing to judge again."
        judged_again = self.images - self.same_model
        lines = [f"{len(self.changed):,} of {count(judged_again, 'answer')} changed."]
        lines += [f"  {each.path}: {each.before} -> {each.after}" for each in self.changed[:SHOWN]]
        if len(self.changed) > SHOWN:
            lines.append(f"  and {len(self.changed) - SHOWN:,} more: --out changes.csv lists all")
        if self.gone:
            lines.append(f"{count(len(self.gone), 'image')} gone: {first_few(self.gone)}")
        return "\n".join(lines)


def rescore(run: TrainedRun, file: Path, only: str | None = None, again: bool = False) -> Rescored:
    """Judge again what an earlier state of the run has judged; with `again` all rows of the file."""
    table, images = _read(run, file)
    old = (table["model"] != run.model_version).to_numpy() | again
    if not old.any():
        return Rescored(len(table), len(table))
    before, some = table[old].reset_index(drop=True), images.taken(old.nonzero()[0])
    bursts = by_sequence(some, "sequence") if "sequence" in some.table else None
    changed, gone = [], []
    # The bursts' order is another than the table's.
    records: list[dict[str, Any]] = before.to_dict("records")  # type: ignore[assignment]
    rows_before = dict(zip(some.paths, records, strict=True))
    now = judged(run, some if bursts is None else bursts.images, asked_of(run, only), bursts)
    with console.progress("judging again") as progress:
        done = 0
        for rows in now:
            for row in rows:
                earlier = rows_before[row["path"]]
                if row["error"] == NO_FILE:
                    gone.append(earlier["path"])
                elif answer_of(earlier) != answer_of(row):
                    changed.append(change_of(earlier, row))
            done += len(rows)
            progress(done, len(some))
    return Rescored(len(table), int((~old).sum()), changed, gone)


def _read(run: TrainedRun, file: Path) -> tuple[pd.DataFrame, NamedImages]:
    if file.suffix.lower() not in TABLES or not file.is_file():
        why = "It is a folder." if file.is_dir() else "" if file.is_file() else "There is no such file."
        raise UserError(f"{file} is no table of predictions.", why, "predictions.csv, or .parquet")
    table = read_table(file)
    if missing := [column for column in NEEDED if column not in table]:
        raise UserError(
            f"{file} lacks the column {first_few(missing)}.",
            "It was not written by `oltr predict`, or by an earlier version.",
            f"oltr predict {run.path} {file} --out NEW.csv",
        )
    table = table.astype(object).where(table.notna(), "")
    versions = sorted(set(table["model"]))
    strangers = [version for version in versions if not same_weights(version, run.model_version)]
    if strangers:
        raise UserError(
            f"{file} holds answers of another run.",
            f"Its model is {first_few(strangers)}, that of {run.path} is {run.model_version}.",
            f"the run that made it, or oltr predict {run.path} {file} --out NEW.csv",
        )
    images = named_images([file])
    if len(images) != len(table):
        raise UserError(f"{file} has several rows for one image.")
    return table, images


def answer_of(row: dict[str, Any]) -> str:
    """A class, "unknown" or "failed"."""
    if row["error"]:
        return FAILED
    return UNKNOWN if str(row["unknown"]) == "True" else str(row["label"])


def change_of(earlier: dict[str, Any], row: dict[str, Any]) -> Change:
    """The rows of one image before and after."""
    return Change(
        earlier["path"],
        answer_of(earlier),
        answer_of(row),
        str(earlier["label"]),
        str(row.get("label", "")),
        float(earlier["probability"]) if str(earlier["probability"]) else None,
        row.get("probability"),
    )
