"""Whether a suite can be run, checked before hours of training."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from oltr.config import within
from oltr.data.longtail import ALPHAS
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.openset import SCORES, Odin, Score
from oltr.openset.threshold import check_choice
from oltr.recipes import load_recipe
from oltr.registry import unknown_name
from oltr.suites.run import Part, Run
from oltr.suites.suite_file import Suite, SuiteRow


def check_rows(suite: Suite, runs: Sequence[Run], own_recipe: bool = True) -> None:
    """Refuse names that do not exist and rows that could not be measured on these runs."""
    expect = load_recipe(suite.recipe).expect
    if suite.identify is not None and suite.sweep:
        raise UserError(f"Suite {suite.name}: a sweep and `identify:` do not go together.")
    for alpha in suite.alphas:
        within("alpha", alpha, *ALPHAS)
    for row in suite.rows:
        where, score = f"Row {row.label!r} of suite {suite.name}", _score(row)
        if row.embedding is not None and suite.identify is None:
            raise UserError(f"{where}: an embedding is for suites with `identify:`.")
        if suite.identify is not None and _rejects(row):
            raise UserError(f"{where}: identification has no score of the unknown, threshold or rate.")
        if row.tune or row.threshold is not None or row.unknown_rate is not None:
            try:
                check_choice(score, row.threshold, row.unknown_rate)
            except UserError as problem:
                raise UserError(f"{where}: {problem.what}", problem.why, "unknown_rate: 0.05") from None
        if score.name == "reachability" and not all(
            run.config.settings.get("reachability") for run in runs if run.measures(row)
        ):
            raise UserError(f"{where}: {row.method} has no reachability.")
        if row.tune and score.name != Odin.name:
            raise UserError(f"{where}: only odin can be tuned.")
        if row.noise is not None and (row.tune or score.name != Odin.name):
            raise UserError(f"{where}: a noise is odin's, where it is not tuned.")
        changed = row.tune or row.noise is not None
        if suite.sweep and (changed or (suite.sweep == "threshold" and score.name != "softmax")):
            raise UserError(
                f"{where}: sweep: {suite.sweep} cannot take its score.",
                "Thresholds are swept over the softmax probability, and no sweep changes a score.",
            )
        # The rows of other recipes may be fewer.
        if own_recipe and row.expect not in (None, row.method, *expect):
            raise unknown_name(f"published row in recipe {suite.recipe}", str(row.expect), expect)


def check_sweep(suite: Suite, manifest: Manifest) -> None:
    """Refuse data on which the suite's sweep would show nothing."""
    if suite.sweep and not manifest.sizes()["open"]:
        raise UserError(
            "The source has no open images.",
            f"The suite {suite.name} is about what they do to the results.",
            "a source with images in the split open",
        )
    if suite.sweep == "open":
        manifest.open_class_names()


def measurable(suite: Suite, manifest: Manifest) -> Suite:
    """The suite with the rows that can be measured: without open images, none about a score."""
    images = manifest.sizes()
    if not images["test"]:
        raise UserError("The source has no test images.", try_this="a source with a test split")
    if not images["open"]:
        rows = [dataclasses.replace(row, threshold=None, unknown_rate=None) for row in suite.rows]
        if not (closed := tuple(row for row in rows if not row.score)):
            raise UserError("The source has no open images.", "All rows are about them.")
        return dataclasses.replace(suite, rows=closed)
    if not images["val"] and any(map(_needs_validation, suite.rows)):
        raise UserError(
            "The source has no validation images.",
            f"The thresholds of suite {suite.name} are chosen on them.",
            "a source with a val split",
        )
    return suite


def check_folder(part: Part, manifest: Manifest) -> None:
    """Refuse a folder that holds something else, or whose runs had other settings or other data."""
    out = part.out
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file.", try_this="another --out")
    if (out / "table.md").exists() and not (out / "suite.json").exists():
        raise UserError(f"{out} holds a table.md that no suite wrote.", try_this="another --out")
    for run in part.runs:
        folder = part.folder(run)
        if (folder.path / "run.yaml").is_file():
            from oltr.runs.train_run import as_packed

            folder.check_same(as_packed(run.config, manifest), manifest)
        else:
            folder.check_free()


def _rejects(row: SuiteRow) -> bool:
    """Whether the row says something about rejection."""
    return any(each is not None for each in (row.score, row.threshold, row.unknown_rate, row.tune, row.noise))


def _score(row: SuiteRow) -> type[Score]:
    return SCORES[row.score or METHODS[row.method].score]


def _needs_validation(row: SuiteRow) -> bool:
    """Whether the row's threshold can only be chosen on validation images."""
    no_default = row.threshold is None and _score(row).default_threshold is None
    return row.unknown_rate is not None or no_default
