"""A run from start to report."""

from __future__ import annotations

from pathlib import Path

from oltr.config import RunConfig
from oltr.data.manifest import Manifest
from oltr.engine.console import Console, process_rank
from oltr.engine.evaluate_run import collect, make_report, save_outputs
from oltr.engine.fit import FitOptions, fit, training_device
from oltr.engine.run_folder import RunFolder
from oltr.evaluation.report import Report


def train_run(
    config: RunConfig, manifest: Manifest, out: str | Path, console: Console, options: FitOptions, source: str = ""
) -> Report | None:
    """Train, cache the outputs, write report.json; None where there are no test images, and on helper processes."""
    folder = RunFolder(out)
    network, images = fit(config, manifest, out, console, options, source)
    outputs = collect(network, images, config, training_device(options), console)
    save_outputs(folder, outputs)
    if "test" not in outputs or process_rank() > 0:
        return None
    report = make_report(folder, outputs)
    report.save(folder.report)
    return report
