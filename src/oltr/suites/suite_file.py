"""Suites: tables of the paper as files, which name the runs and how each row is measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oltr.config import build
from oltr.errors import UserError
from oltr.recipes import file_names, find_file, read_entries
from oltr.registry import unknown_name
from oltr.training.changed_settings import as_yaml

# As "part.number" of report.json.
PAPER_COLUMNS = (
    *(f"closed.{key}" for key in ("many", "medium", "few", "overall")),
    *(f"open.{key}" for key in ("many", "medium", "few", "f_measure", "f_measure_2019", "auroc")),
)
COLUMNS = (
    *PAPER_COLUMNS,
    "closed.macro_f1",
    "open.overall",
    "open.unknown_recall",
    *(f"open.{key}" for key in ("aupr_known", "aupr_unknown", "fpr95_known", "fpr95_unknown", "oscr")),
    *(f"open.{key}" for key in ("detection_error", "detection_error_min")),
)
# Of a suite whose rows are identified: rank 1 by pseudo-shots and in all; groups come behind them.
FACE_COLUMNS = tuple(f"identify.{key}" for key in ("many", "few", "one", "zero", "rank1"))


@dataclass(frozen=True)
class SuiteRow:
    """A row of the table: a run (method and changes) and its rejection rule, the run's own unless given."""

    method: str
    label: str = ""  # the method and its score, unless given
    changes: tuple[str, ...] = ()  # as in `oltr train --set`
    teacher: str | None = None  # the label of a row above it, whose run of the same seed is the teacher
    score: str | None = None
    threshold: float | None = None
    unknown_rate: float | None = None
    tune: Literal["open"] | None = None  # choose the score's own numbers on open images, as for ODIN
    noise: float | None = None  # ε of ODIN in the place of its own
    embedding: Literal["direct", "meta"] | None = None  # identified by; the headline's unless given
    expect: str | None = None  # the published row beside it; the method's unless the row changes something

    @property
    def run(self) -> str:
        """What its run is called, the seed apart; several rows may have the same."""
        return " + ".join([self.method, *self.changes])


@dataclass(frozen=True)
class IdentifySettings:
    """How the rows of a suite are identified, as in `oltr identify`; whom and where is the user's to say."""

    mates: Literal["nearest", "each"] = "nearest"
    ranks: tuple[int, ...] = (1, 5)
    shot_similarity: float = 0.7
    by: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """What a table can show of it, groups apart."""
        rates = (*(f"rank{rank}" for rank in self.ranks), *(f"dir_{rate:g}" for rate in (0.01, 0.001)))
        return [*FACE_COLUMNS, *(f"identify.{key}" for key in rates)]


@dataclass(frozen=True)
class Suite:
    """A table: the setting, the data, the rows."""

    about: str
    recipe: str
    rows: tuple[SuiteRow, ...]
    name: str = ""
    source: str | None = None  # the commands that make the data; without it, glyphs are drawn
    columns: tuple[str, ...] = PAPER_COLUMNS
    unknown_rate: float | None = None  # of rows that have neither a rate nor a threshold
    notes: tuple[str, ...] = ()  # what to know when reading the table
    sweep: Literal["threshold", "open", "longtail"] | None = None  # what is varied, beside the table
    alphas: tuple[float, ...] = ()  # of a longtail sweep: the Pareto powers of the class sizes
    identify: IdentifySettings | None = None  # rows are measured by identification, not on test images


def suite_names() -> list[str]:
    """The suites of this package and of plug-ins."""
    return file_names("suites")


def load_suite(name: str) -> Suite:
    """A suite by its name, or from a YAML file of the user's own."""
    own_file = name.endswith((".yaml", ".yml"))
    if own_file and not Path(name).is_file():
        raise UserError(f"There is no file {name}.")
    path = Path(name) if own_file else find_file(name, "suites")
    if path is None:
        raise unknown_name("suite", name, suite_names())
    values = read_entries(path)
    usual = {} if values.get("identify") is None else {"columns": FACE_COLUMNS}
    suite = build(Suite, {"name": path.stem, **usual, **values}, f"suite {path.name}")
    rows: tuple[SuiteRow, ...] = ()
    for row in suite.rows:
        rows += (_filled(_taught(row, rows, suite), suite),)
    labels = [row.label for row in rows]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise UserError(f"Suite {path.name} has several rows called {twice[0]!r}.", try_this="a label each")
    if not rows:
        raise UserError(f"Suite {path.name} has no rows.")
    if (suite.sweep == "longtail") != bool(suite.alphas):
        raise UserError(f"Suite {path.name}: alphas belong to sweep: longtail, and it needs them.")
    known = COLUMNS if suite.identify is None else suite.identify.columns
    for column in suite.columns:
        if column not in known:
            raise unknown_name(f"column in suite {path.name}", column, known)
    return dataclasses.replace(suite, rows=rows)


def select_rows(suite: Suite, names: Iterable[str]) -> Suite:
    """The suite with the rows of these methods, or with these labels, alone; all without names."""
    names, known = list(names), {*(row.method for row in suite.rows), *(row.label for row in suite.rows)}
    for name in names:
        if name not in known:
            raise unknown_name(f"method in the suite {suite.name}", name, known)
    rows: list[SuiteRow] = []
    teachers: set[str | None] = set()
    for row in reversed(suite.rows):  # teachers stand above those whom they teach
        if not names or row.method in names or row.label in names or row.run in teachers:
            rows.insert(0, row)
            teachers = (teachers - {row.run}) | {row.teacher}
    return dataclasses.replace(suite, rows=tuple(rows))


def _taught(row: SuiteRow, above: Sequence[SuiteRow], suite: Suite) -> SuiteRow:
    """The row with its teacher called by the run, and that among its changes."""
    if row.teacher is None:
        return row
    runs = {each.label: each.run for each in above}
    if row.teacher not in runs or suite.sweep == "longtail":
        raise UserError(
            f"Suite {suite.name}: a row of {row.method} has the teacher {row.teacher!r}.",
            "A teacher is the label of a row above it; a longtail sweep, with its frozen backbone, has none.",
            f"one of: {', '.join(runs)}" if runs and suite.sweep != "longtail" else "a row without a teacher",
        )
    teacher = runs[row.teacher]
    change = f"distill.teacher={as_yaml(teacher)}"
    return dataclasses.replace(row, teacher=teacher, changes=(*row.changes, change))


def _filled(row: SuiteRow, suite: Suite) -> SuiteRow:
    """The row with the defaults that the file leaves unsaid."""
    as_it_is = not (row.changes or row.score or row.tune or row.embedding)
    rate = suite.unknown_rate if row.threshold is None and row.unknown_rate is None else row.unknown_rate
    label = row.label or " + ".join([row.run, *filter(None, (row.score, row.embedding))])
    expect = row.expect or (row.method if as_it_is else None)
    return dataclasses.replace(row, label=label, unknown_rate=rate, expect=expect)
