"""Run folders as the page needs them: reports, outputs, data, and whether they can stand side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.metrics.shots import SHOT_RULES, shot_sizes
from oltr.openset import SCORES
from oltr.report.choose_runs import best_first
from oltr.report.compare import load_reports
from oltr.report.loaded_run import LoadedRun
from oltr.report.page.remeasure import disagreements, remeasured
from oltr.runs.evaluate_run import Prepared, cached_outputs, prepared_score
from oltr.runs.read_outputs import own_manifest
from oltr.runs.report import Report
from oltr.training.run_folder import RunFolder
from oltr.wording import first_few


@dataclass(frozen=True, eq=False)
class PageRun:
    """A run with its report and with what run.yaml says of it."""

    loaded: LoadedRun
    report: Report  # measured anew from its outputs
    kept: Report  # as its report.json has it
    facts: dict[str, Any]
    path: Path  # as it was given
    caution: str = ""  # why its numbers are others than those of its report.json

    @property
    def name(self) -> str:
        return self.loaded.name


def load_page_runs(paths: Sequence[Path], console: Console) -> list[PageRun]:
    """The runs in the order given, refused where they do not know the same classes."""
    if not paths:
        raise UserError("No run folder was given.", try_this="oltr report runs/a")
    given: dict[Path, Path] = {}
    for path in paths:
        given.setdefault(path.resolve(), path)
    reports = load_reports(given)
    known: dict[str, Manifest | UserError] = {}
    runs = [
        _load(name, report, path, known, console)
        for (name, report), path in zip(reports.items(), given.values(), strict=True)
    ]
    _check_same_classes(runs)
    return runs


def best_run(runs: Sequence[PageRun]) -> PageRun:
    """The one with the highest closed-set accuracy, the first among equals."""
    best = best_first([run.loaded for run in runs])[0]
    return next(run for run in runs if run.loaded is best)


def on_the_same_data(runs: Sequence[PageRun], as_run: PageRun) -> list[PageRun]:
    """Those whose numbers compare with that run's."""
    return [run for run in runs if _fingerprint(run) == _fingerprint(as_run)]


def data_cautions(runs: Sequence[PageRun]) -> list[str]:
    """What does not compare between runs that know the same classes but saw other images."""
    first = runs[0]
    cautions = [f"{run.name}: {run.caution}" for run in runs if run.caution]
    others = [run.name for run in runs if _fingerprint(run) != _fingerprint(first)]
    if others:
        cautions.append(
            f"Other data than those of {first.name}: {', '.join(others)}. The numbers stand side by side, "
            "but differences may come from the data; figures that need the same images say so in their place."
        )
    return cautions


def _load(
    name: str, kept: Report, path: Path, known: dict[str, Manifest | UserError], console: Console
) -> PageRun:
    folder = RunFolder(path)
    facts, classes, outputs = folder.run(), folder.classes(), cached_outputs(folder)
    counts = np.array([entry["train_count"] for entry in classes], dtype=np.int64)
    sizes = {part.logits.shape[1] for part in outputs.values()} | {kept["num_classes"], len(classes)}
    if len(sizes) > 1:
        raise UserError(
            f"{path} is not of one piece.", "Its outputs, classes.json and report.json differ in classes."
        )
    caution, shots = "", _shot_rule(folder, kept, counts)
    try:
        ready, threshold = _rule(folder, kept, outputs, console)
    except UserError as problem:  # e.g. a score that compares with training images which are gone
        ready, threshold = Prepared(SCORES["softmax"], outputs), None
        caution = f"report.json tells unknown images by a score that cannot be read now. {problem.what} The "
        caution += "softmax probability is used here."
    try:
        report = remeasured(folder, kept, outputs, ready, threshold, shots)
    except UserError as problem:  # of many runs one went astray
        hint = problem.try_this or "the page without this run"
        raise UserError(f"{name}: {problem.what}", problem.why, hint) from None
    if not caution and (others := disagreements(kept, report)):
        caution = f"its report.json does not fit the run ({'; '.join(others)}). This page shows what its "
        caution += f"outputs, run.yaml and classes.json give; oltr evaluate {path} writes the report anew."
    source = f"{facts.get('source')} {facts.get('root')} {facts['data']['fingerprint']}"
    if source not in known:
        known[source] = _own_data(folder)
    loaded = LoadedRun(
        name=name,
        folder=path,
        method=report["method"],
        class_names=[entry["name"] for entry in classes],
        counts=counts,
        shots=shots,
        outputs=outputs,
        score=ready.score,
        threshold=report["open"]["threshold"] if "open" in report else None,
        read=ready.outputs,
        data=known[source],
    )
    return PageRun(loaded, report, kept, facts, path, caution)


def _rule(
    folder: RunFolder, report: Report, outputs: dict[str, Any], console: Console
) -> tuple[Prepared, float | None]:
    """The score and the threshold that report.json was made with."""
    if "open" not in report:
        return Prepared(SCORES["softmax"], outputs), None
    part = report["open"]
    return prepared_score(folder, part["score"], outputs, console=console), part["threshold"]


def _shot_rule(folder: RunFolder, report: Report, counts: np.ndarray) -> str:
    """The rule that gives the report's shot groups; the run's own if several do."""
    rules = (folder.config().shots, *SHOT_RULES)
    return next((rule for rule in rules if shot_sizes(counts, rule) == report["shots"]), rules[0])


def _own_data(folder: RunFolder) -> Manifest | UserError:
    try:
        return own_manifest(folder)
    except UserError as problem:
        return UserError("The run's own images are not there any more.", problem.why)


def _fingerprint(run: PageRun) -> str:
    return run.facts["data"]["fingerprint"]


def _check_same_classes(runs: Sequence[PageRun]) -> None:
    first = runs[0]
    for run in runs[1:]:
        ours, theirs = list(first.loaded.class_names), list(run.loaded.class_names)
        if ours != theirs:
            strange = sorted(set(ours) ^ set(theirs))
            why = f"Only one of them has: {first_few(strange)}." if strange else "Their order differs."
            raise UserError(
                f"{first.name} and {run.name} do not know the same classes, so they do not compare.",
                why,
                "a report of each: oltr report RUN",
            )
