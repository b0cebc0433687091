"""`oltr train --from RUN`: a run trained anew with everything that was collected in it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from oltr.console import console


def retrain(run: Path, out: Path | None, seed: int, resume: bool, cpu: bool, as_json: bool) -> None:
    """Train with the run's settings on its data and on what was added since."""
    from oltr.config import DecisionConfig
    from oltr.data.sources import read_source
    from oltr.openworld.collected_data import collected_manifest
    from oltr.runs.train_run import train_run
    from oltr.runs.trained_run import TrainedRun
    from oltr.training.options import TrainOptions
    from oltr.training.run_folder import RunFolder
    from oltr.wording import count

    opened = TrainedRun(run)
    place = run.absolute()
    out = out or place.with_name(f"{place.name}-{opened.changes.version}")
    if not resume:
        RunFolder(out).check_free()
    source = collected_manifest(opened)
    manifest = read_source(source)
    added = sum(len(each.files) for each in opened.changes.added)
    console.say(
        f"training on the data of {run} and {count(added, 'collected image')}: "
        f"{count(len(manifest.classes), 'class')}"
    )
    console.notes(manifest.notes)
    rule = opened.rule
    threshold = rule.threshold if rule.unknown_rate is None else None
    decision = DecisionConfig(rule.score, threshold, rule.unknown_rate)
    config = dataclasses.replace(opened.config, seed=seed or opened.config.seed, decision=decision)
    options = TrainOptions(resume=resume, accelerator="cpu" if cpu else "auto")
    report = train_run(config, manifest, out, options, str(source))
    if report is not None:
        print(report.to_json() if as_json else report.table().text(), end="" if as_json else "\n")
    console.say(f"run folder: {out}")
