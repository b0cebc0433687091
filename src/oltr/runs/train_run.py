"""A run from start to report."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from oltr.config import RunConfig
from oltr.console import Console, process_rank
from oltr.console import console as process_console
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.runs.evaluate_run import collect, make_report, save_outputs
from oltr.runs.report import Report
from oltr.runs.run_outputs import SPLITS, kept_outputs, load_network
from oltr.training.options import TrainOptions, training_device
from oltr.training.run_folder import RunFolder
from oltr.training.train import train


def as_packed(config: RunConfig, manifest: Manifest) -> RunConfig:
    """The run with the size of a pack that stores less than the recipe does; later images get the same."""
    if manifest.pack is None:
        return config
    size = open_pack(manifest.pack).size
    if not config.data.image_size <= size < config.data.stored_size:
        return config
    return dataclasses.replace(config, data=dataclasses.replace(config.data, stored_size=size))


def _is_whole(folder: RunFolder, manifest: Manifest) -> bool:
    """Whether a run has ended and all that it leaves can be read: then there is nothing to go on with."""
    if not (folder.path / "run.yaml").is_file() or not folder.run()["finished"]:
        return False
    measured = [split for split in SPLITS if manifest.sizes()[split]]
    try:
        load_network(folder)
        return folder.report.is_file() and set(kept_outputs(folder, measured)) == set(measured)
    except UserError:
        return False


def train_run(
    config: RunConfig,
    manifest: Manifest,
    out: str | Path,
    console: Console,
    options: TrainOptions,
    source: str = "",
) -> Report | None:
    """Train, cache the outputs, write report.json; None without test images, and on helper processes."""
    folder, config = RunFolder(out), as_packed(config, manifest)
    if options.resume and _is_whole(folder, manifest):
        folder.check_same(config, manifest)
        return None if process_rank() > 0 else Report.load(folder.report)
    with process_console.silent(console.screen.quiet):
        network, images = train(config, manifest, out, options, source)
    outputs = collect(network, images, config, training_device(options), console, options.workers)
    save_outputs(folder, outputs)
    if "test" not in outputs or process_rank() > 0:
        return None
    report = make_report(folder, outputs)
    report.save(folder.report)
    return report
