"""A run from start to report."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from oltr.config import RunConfig
from oltr.console import console, process_rank
from oltr.data.image_access import Images
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.openset import SCORES
from oltr.runs.collect import collect_outputs
from oltr.runs.exemplars import keep_exemplars
from oltr.runs.outputs import SPLITS
from oltr.runs.own_data import warn_of_frame
from oltr.runs.report import Report
from oltr.runs.rule import check_decision, score_of
from oltr.runs.trained_run import TrainedRun
from oltr.training.options import TrainOptions, training_device
from oltr.training.run_folder import RunFolder
from oltr.training.train import train


def train_run(
    config: RunConfig, manifest: Manifest, out: str | Path, options: TrainOptions, source: str = ""
) -> Report | None:
    """Train, keep outputs and rejection rule, write report.json; None without test images, and on helper
    processes."""
    wanted, config = config.data, as_packed(config, manifest)
    folder = RunFolder(out)
    check_decision(config, bool(manifest.sizes()["val"]))
    if options.resume and _is_complete(folder, manifest):
        folder.check_same(config, manifest)
        return None if process_rank() > 0 else Report.load(folder.report)
    if manifest.pack is not None:
        warn_of_frame(open_pack(manifest.pack), wanted, f"recipe {config.recipe} wants them")
    network, images, config = train(config, manifest, out, options, source)
    return measure_run(config, network, images, manifest, out, options)


def measure_run(
    config: RunConfig,
    network: Network,
    images: dict[str, Images],
    manifest: Manifest,
    out: str | Path,
    options: TrainOptions,
) -> Report | None:
    """What follows training: outputs, exemplars and rejection rule kept, report.json written."""
    folder, device = RunFolder(out), training_device(options)
    splits = [split for split in SPLITS if split in images and len(images[split])]
    if SCORES[score_of(config.decision, config, "val" in splits)].needs_fit:
        splits.append("train")  # here, where all processes share the work
    for split in splits:
        with console.progress(f"evaluating {split}") as progress:
            outputs = collect_outputs(
                network.to(device),
                images[split],
                config.data,
                device,
                precision=config.precision,
                workers=options.workers,
                progress=progress,
            )
        if process_rank() == 0:
            outputs.save(folder.outputs / f"{split}.safetensors")
    if "train" in images:
        exemplars = folder.exemplars if process_rank() == 0 else None
        keep_exemplars(network, images["train"], config, device, options.workers, exemplars)
    if process_rank() > 0:
        return None
    run = TrainedRun(out)
    run.trained_network = network.eval()  # it is here already
    run.own_data = manifest
    if "decision" not in run.facts:  # a resumed run may have been given another since
        run.keep_rule()
    elif "test" in run.outputs:
        run.measure().save(folder.report)
    return run.report if "test" in run.outputs else None


def as_packed(config: RunConfig, manifest: Manifest) -> RunConfig:
    """The run with the shape and size of a pack's images, which may be made otherwise and smaller than the
    recipe wants; later images get the same."""
    if manifest.pack is None:
        return config
    data, frame = config.data, open_pack(manifest.pack).frame
    changes: dict[str, Any] = {"resize": frame.resize, "interpolation": frame.interpolation}
    if data.image_size <= frame.size < data.stored_size:
        changes["stored_size"] = frame.size
    return dataclasses.replace(config, data=dataclasses.replace(data, **changes))


def _is_complete(folder: RunFolder, manifest: Manifest) -> bool:
    """Whether a run has ended and all that it leaves can be read: then there is nothing to resume."""
    if not (folder.path / "run.yaml").is_file() or not folder.run()["finished"]:
        return False
    measured = [split for split in SPLITS if manifest.sizes()[split]]
    try:
        run = TrainedRun(folder.path)
        _ = run.network
        return folder.report.is_file() and all(
            split in run.outputs and run.outputs[split] for split in measured
        )
    except UserError:
        return False
