"""The sweep over the imbalance of the training images: a suite at every α, on one frozen backbone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oltr.errors import UserError

if TYPE_CHECKING:
    from oltr.console import Console
    from oltr.data.manifest import Manifest
    from oltr.figures.sweep_curves import Curve
    from oltr.runs.report import Report
    from oltr.suites.order import Order
    from oltr.suites.plan_longtail import Part
    from oltr.suites.rows import Results
    from oltr.suites.seeds import SeedRow
    from oltr.suites.suite_file import Suite

GLYPHS_EACH = 280  # images drawn of every class: as many as the largest has in the embedded set


def with_alphas(table: Suite, alphas: Sequence[float]) -> Suite:
    """The suite with the α of the command line."""
    if table.sweep != "longtail":
        raise UserError(f"The suite {table.name} has no --alphas.", try_this="oltr suite sweep-longtail")
    return dataclasses.replace(table, alphas=tuple(alphas))


def sweep_longtail(order: Order, parts: Sequence[Part], console: Console) -> int:
    """Train what is not finished, write the table after every run and the sweep at the end; the exit code."""
    from oltr.data.sources import read_source
    from oltr.suites.check import measurable
    from oltr.suites.run_suite import check_kept, run_suite
    from oltr.suites.sweep_data import kept_set, longtail_sets

    source = order.source or _whole_set(order.table, order.out, console)
    full = read_source(source, order.root, flat="train")
    console.notes(full.notes)
    _check(order.table, full)
    check_kept([], order.out, full)
    backbone, *swept = parts
    sets = longtail_sets(full, [part.alpha for part in swept])
    measurable(order.table, sets[backbone.alpha].sizes())
    sources = {part.alpha: kept_set(full, sets[part.alpha], part.out) for part in swept}
    manifests = {alpha: read_source(path) for alpha, path in sources.items()}
    for part in parts:
        check_kept(part.runs, part.out, manifests[part.alpha])
    facts = order.facts(source, full, _notes(backbone, manifests))
    facts["sets"] = [
        {"alpha": alpha, "images": drawn.sizes(), "fingerprint": drawn.fingerprint()}
        for alpha, drawn in manifests.items()
    ]
    done: list[tuple[Part, Results]] = []
    for part in parts:
        console.say(part.words)
        for results in run_suite(
            part.suite,
            part.runs,
            part.out,
            sources[part.alpha],
            manifests[part.alpha],
            console,
            jobs=order.jobs,
            cpu=order.cpu,
        ):
            so_far = [*done, (part, results)]
            told = order.write(order.table, _rows(so_far), {**facts, **_machine(so_far)})
        done = so_far
        if part is backbone and results.failed():
            break  # nothing could be trained on it
    failed = [f"{part.words}, {line}" for part, results in done for line in results.failed()]
    curves = _curves(done[1:])
    if curves:
        told = order.write_sweep(curves, {**facts, **_machine(done)})
    return order.tell(*told, failed, console, swept=bool(curves))


def _whole_set(table: Suite, out: Path, console: Console) -> str:
    """Characters drawn on the spot, equally many of each, where the recipe is theirs."""
    if table.recipe == "glyphs":
        from oltr.cli.glyph_pack import draw_glyphs

        return str(draw_glyphs(out, 0, console, each=GLYPHS_EACH))
    raise UserError(
        f"The suite {table.name} needs --source.",
        "Its training images are drawn from a whole set, one that is not long-tailed yet.",
        "--source with such a set, which has a split open too",
    )


def _check(table: Suite, full: Manifest) -> None:
    """Refuse data on which the sweep would show nothing; test and val images can be taken from training."""
    from oltr.suites.check import check_sweep
    from oltr.training.train import check_trainable

    check_trainable(full)
    check_sweep(table, full)


def _notes(backbone: Part, manifests: Mapping[float, Manifest]) -> list[str]:
    images = (f"{drawn.sizes()['train']:,} at α = {alpha:g}" for alpha, drawn in manifests.items())
    return [
        f"The backbone is the plain model's, trained at α = {backbone.alpha:g}, frozen in all other runs.",
        f"Training images: {', '.join(images)}.",
    ]


def _rows(done: Sequence[tuple[Part, Results]]) -> list[SeedRow]:
    """All rows of the parts, each with its α."""
    return [
        dataclasses.replace(row, label=f"{row.label}, α = {part.alpha:g}")
        for part, results in done
        for row in results.rows
    ]


def _curves(done: Sequence[tuple[Part, Results]]) -> list[Curve]:
    """The curves of every row over the α, of those rows that have a finished run."""
    from oltr.figures.longtail_sweep import longtail_curves

    by_label: dict[str, dict[float, dict[int, Report]]] = {}
    for part, results in done:
        for row in results.rows:
            by_label.setdefault(row.label, {})[part.alpha] = row.reports
    return [
        curve
        for label, reports in by_label.items()
        if any(reports.values())
        for curve in longtail_curves(label, reports)
    ]


def _machine(done: Sequence[tuple[Part, Results]]) -> dict[str, Any]:
    """Machine and versions of the first run, and all runs, each with the folder of its part."""
    found = [(part, results.facts()) for part, results in done]
    runs = [
        {**entry, "run": f"{part.out.name}/{entry['run']}"}
        for part, facts in found
        for entry in facts["runs"]
    ]
    return {**found[0][1], "runs": runs}
