"""`oltr train`: from a source to an evaluated run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.options import Json, Root, Source
from oltr.errors import UserError


def train(
    source: Source,
    recipe: str = "photos",
    method: str = "oltr",
    backbone: str | None = None,
    weights: str | None = None,
    image_size: int | None = None,
    epochs: tuple[int, ...] = (),
    seed: int = 0,
    out: Path | None = None,
    resume: bool = False,
    stage1_from: Path | None = None,
    changes: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="set", metavar="NAME=VALUE")] = (),
    devices: int = 1,
    nodes: int = 1,
    workers: int | None = None,
    cpu: bool = False,
    tensorboard: bool = False,
    dry_run: bool = False,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Train a recogniser on a source, evaluate it on the source's test and open images, and keep all in a folder.

    Args:
        source: a manifest, an image folder, a folder of list files, or a pack.
        recipe: the setting (`oltr recipes`), or a YAML file of your own.
        method: the system (`oltr methods`).
        backbone: any timm model, resnet10, resnet10_half or resnet32_cifar; else the recipe's.
        weights: start the backbone from this file, or `pretrained` to download; from scratch otherwise.
        image_size: pixels the network sees; else the recipe's.
        epochs: of stage 1 and stage 2; learning-rate drops move in proportion.
        seed: same seed, data and machine: same result.
        out: the run folder; runs/SOURCE-METHOD unless given.
        resume: go on with an interrupted run in --out, to the same result.
        stage1_from: take stage 1 from this run, which trained it under the same settings.
        changes: change one setting, e.g. --set stage2.lr=0.01 --set settings.memory=false.
        devices: GPUs, or processes on a CPU.
        nodes: machines.
        workers: processes that read image files.
        cpu: train on the CPU although there is a GPU.
        tensorboard: also log for TensorBoard, into the run folder.
        dry_run: say what would be done and stop.
        root: where the manifest's relative paths start.
    """
    from oltr.data.sources import read_source
    from oltr.engine.configure import configure
    from oltr.engine.console import Console, process_rank

    console = Console()
    config = configure(
        recipe, method, backbone=backbone, weights=weights, image_size=image_size, epochs=epochs, seed=seed,
        changes=changes,
    )
    manifest = read_source(source, root)
    for note in manifest.notes:
        console.warn(note) if "only one" in note else console.say(note)
    out = out or Path("runs") / f"{Path(source).stem or Path(source).resolve().stem}-{method}"
    if dry_run:
        _tell_plan(config, manifest, out)
        return

    from oltr.engine.fit import FitOptions
    from oltr.engine.train_run import train_run

    options = FitOptions(
        resume=resume, stage1_from=stage1_from, devices=devices, nodes=nodes, tensorboard=tensorboard,
        accelerator="cpu" if cpu else "auto",
    )
    if workers is not None:
        options.workers = workers
    if devices < 1 or nodes < 1:
        raise UserError("--devices and --nodes start at 1.")
    report = train_run(config, manifest, out, console, options, source)
    if process_rank() > 0:
        return
    if report is None:
        console.say("no test images, so no report; the model is trained and saved")
    elif as_json:
        print(report.to_json())
    else:
        print(report.table().text())
    console.say(f"run folder: {out}")


def _tell_plan(config, manifest, out: Path) -> None:  # type: ignore[no-untyped-def]
    """The whole configuration and what it would be trained on."""
    import dataclasses

    import yaml

    print(yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, default_flow_style=None).rstrip())
    sizes = ", ".join(f"{split} {n:,}" for split, n in manifest.sizes().items())
    print(f"# {len(manifest.classes):,} classes; images: {sizes}")
    print(f"# would be trained into {out}")
