"""Whether a suite can be carried out, found out before hours of training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from oltr.config import within
from oltr.data.longtail import ALPHAS
from oltr.data.manifest import Manifest
from oltr.data.open_names import open_class_names
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.openset import SCORES
from oltr.openset.odin import Odin
from oltr.openset.threshold import check_choice
from oltr.recipes import load_recipe, merge
from oltr.registry import unknown_name
from oltr.suites.suite_file import Suite
from oltr.training.configure import parse_change, recipe_config


def check_rows(suite: Suite, own_recipe: bool = True) -> None:
    """Refuse names that do not exist and rows that could not be measured."""
    expect = load_recipe(suite.recipe).expect
    for alpha in suite.alphas:
        within("alpha", alpha, *ALPHAS)
    for row in suite.rows:
        score = SCORES[row.score or METHODS[row.method].score]
        try:
            check_choice(score, row.threshold, row.unknown_rate)
        except UserError as problem:
            where = f"Row {row.label!r} of suite {suite.name}: {problem.what}"
            raise UserError(where, problem.why, "unknown_rate: 0.05") from None
        settings = recipe_config(suite.recipe, row.method).settings
        for change in row.changes:
            settings = merge(settings, parse_change(change).get("settings", {}))
        if score.name == "reachability" and not settings.get("reachability"):
            raise UserError(f"Row {row.label!r} of suite {suite.name}: {row.method} has no reachability.")
        if row.tune and score.name != Odin.name:
            raise UserError(f"Row {row.label!r} of suite {suite.name}: only odin can be tuned.")
        if suite.sweep and (row.tune or (suite.sweep == "threshold" and score.name != "softmax")):
            raise UserError(
                f"Row {row.label!r} of suite {suite.name}: sweep: {suite.sweep} cannot take its score.",
                "Thresholds are swept over the softmax probability, and no sweep tunes a score.",
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
        open_class_names(manifest)


def measurable(suite: Suite, images: Mapping[str, int]) -> Suite:
    """The suite for data with so many images per split: without open images, no rows about a score."""
    if not images["test"]:
        raise UserError("The source has no test images.", try_this="a source with a test split")
    if not images["open"]:
        rows = [dataclasses.replace(row, threshold=None, unknown_rate=None) for row in suite.rows]
        if not (closed := tuple(row for row in rows if not row.score)):
            raise UserError("The source has no open images.", "All rows are about them.")
        return dataclasses.replace(suite, rows=closed)
    if not images["val"] and any(row.unknown_rate is not None for row in suite.rows):
        raise UserError(
            "The source has no validation images.",
            f"The thresholds of suite {suite.name} are chosen on them.",
            "a source with a val split",
        )
    return suite
