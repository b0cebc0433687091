"""A run from start to report."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from oltr.config import RunConfig
from oltr.data.manifest import Manifest
from oltr.data.store import open_pack
from oltr.engine.console import Console, process_rank
from oltr.engine.evaluate_run import collect, make_report, save_outputs
from oltr.engine.fit import fit
from oltr.engine.options import FitOptions, training_device
from oltr.engine.run_folder import RunFolder
from oltr.evaluation.report import Report


def as_packed(config: RunConfig, manifest: Manifest) -> RunConfig:
    """The run with a pack's own image size, since later images must be decoded to the same."""
    if manifest.pack is None:
        return config
    data = dataclasses.replace(config.data, stored_size=open_pack(manifest.pack).size)
    return dataclasses.replace(config, data=data)


def train_run(
    config: RunConfig,
    manifest: Manifest,
    out: str | Path,
    console: Console,
    options: FitOptions,
    source: str = "",
) -> Report | None:
    """Train, cache the outputs, write report.json; None without test images, and on helper processes."""
    folder, config = RunFolder(out), as_packed(config, manifest)
    network, images = fit(config, manifest, out, console, options, source)
    outputs = collect(network, images, config, training_device(options), console, options.workers)
    save_outputs(folder, outputs)
    if "test" not in outputs or process_rank() > 0:
        return None
    report = make_report(folder, outputs)
    report.save(folder.report)
    return report
