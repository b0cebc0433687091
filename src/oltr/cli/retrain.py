"""`oltr train --from RUN`: a run trained anew with everything that was collected in it."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from oltr.console import console
from oltr.errors import UserError

if TYPE_CHECKING:
    from oltr.config import RunConfig
    from oltr.runs.trained_run import TrainedRun
    from oltr.training.run_folder import RunFolder


def retrain(run: Path, out: Path | None, seed: int, resume: bool, cpu: bool, as_json: bool) -> None:
    """Train with the run's settings on its data and on what was added since.

    A run that was begun is gone on with as it was begun, whatever has become of the other one since.
    """
    from oltr.data.sources import read_source
    from oltr.runs.train_run import train_run
    from oltr.runs.trained_run import TrainedRun
    from oltr.training.options import TrainOptions
    from oltr.training.run_folder import RunFolder

    folder = RunFolder(out or _beside(TrainedRun(run)))
    begun = resume and (folder.path / "run.yaml").is_file()
    source, config = _as_begun(folder) if begun else _prepared(TrainedRun(run), folder)
    try:
        manifest = read_source(source)
        console.notes(manifest.notes)
        config = dataclasses.replace(config, seed=seed or config.seed)
        options = TrainOptions(resume=resume, accelerator="cpu" if cpu else "auto")
        report = train_run(config, manifest, folder.path, options, str(source))
    except BaseException:
        if not (folder.path / "run.yaml").is_file():  # it came to nothing
            shutil.rmtree(folder.collected, ignore_errors=True)
            folder.discard()
        raise
    if report is not None:
        print(report.to_json() if as_json else report.table().text(), end="" if as_json else "\n")
    console.say(f"run folder: {folder.path}")


def _beside(run: TrainedRun) -> Path:
    place = run.path.absolute()
    return place.with_name(f"{place.name}-{run.changes.version}")


def _as_begun(folder: RunFolder) -> tuple[Path, RunConfig]:
    """Source and settings of a run to be gone on with."""
    source = Path(folder.run().get("source") or "")
    if source.parent.name != folder.collected.name:
        raise UserError(f"{folder.path} was not begun with --from.", try_this="another --out")
    return folder.collected_manifest if folder.collected_manifest.is_file() else source, folder.config()


def _prepared(run: TrainedRun, folder: RunFolder) -> tuple[Path, RunConfig]:
    """Source and settings of a new run, and all collected images in its folder."""
    from oltr.config import DecisionConfig, DistillConfig
    from oltr.openworld.collected_data import collected_manifest
    from oltr.wording import count

    folder.check_free()
    source = collected_manifest(run, folder)
    added = sum(len(each.files) for each in run.changes.added)
    console.say(
        f"training on the data of {run.path} and {count(added, 'collected image')}: "
        f"{count(len(run.class_names), 'class')}"
    )
    rule = run.rule
    threshold = rule.threshold if rule.unknown_rate is None else None
    decision = DecisionConfig(rule.score, threshold, rule.unknown_rate)
    config = dataclasses.replace(run.folder.config(), decision=decision)
    if config.distill.teacher is not None and run.changes:
        console.warn(f"the teacher {config.distill.teacher} does not know the classes of now: it is left out")
        config = dataclasses.replace(config, distill=DistillConfig())
    return source, config
