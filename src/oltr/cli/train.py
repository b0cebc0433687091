"""`oltr train`: from a source to an evaluated run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from oltr.cli.options import Epochs, GroupBy, Json, Root, Score, SkipBroken, Source, print_json
from oltr.errors import UserError

if TYPE_CHECKING:
    from oltr.config import RunConfig
    from oltr.data.manifest import Manifest
    from oltr.training.choose import Choice

Changes = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="set", metavar="NAME=VALUE")
]


def train(
    source: Source = "",
    recipe: Annotated[str, tyro.conf.arg(metavar="NAME")] = "photos",
    method: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    backbone: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    weights: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None,
    train_backbone: Literal["auto", "none", "last", "all"] = "auto",
    teacher: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None,
    image_size: int | None = None,
    epochs: Epochs = (),
    score: Score = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    seed: int = 0,
    group_by: GroupBy = None,
    folds: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    stage1_from: Path | None = None,
    from_run: Annotated[Path | None, tyro.conf.arg(name="from", metavar="RUN")] = None,
    changes: Changes = (),
    devices: int = 1,
    nodes: int = 1,
    workers: int | None = None,
    cpu: bool = False,
    tensorboard: bool = False,
    dry_run: bool = False,
    root: Root = None,
    skip_broken: SkipBroken = False,
    as_json: Json = False,
) -> None:
    """Train a recogniser, evaluate it on the source's test and open images, and keep all in a folder.

    Args:
        recipe: the setting (`oltr recipes`), or a YAML file of your own; `photos` uses frozen or fine-tuned
            weights or none, whichever suits the machine, the images and the weights at hand
        method: the system (`oltr methods`), or package.module:Class; else the recipe's
        backbone: any timm model, resnet10, resnet10_half, resnet32_cifar, densenet100_cifar or
            package.module:function, which registers a timm model; else the recipe's
        weights: start the backbone from installed weights (`oltr weights`), a file, or `pretrained` to
            download; `none`: from scratch. Installed ones are used unasked under the recipe photos
        train_backbone: what of pretrained weights learns; `none` computes features once and keeps them;
            `auto` as suits
        teacher: a finished run on the same classes, whose answers share the loss with labels; how much and
            how soft: --set distill.share=0.5 --set distill.temperature=2
        image_size: pixels the network sees; else the recipe's
        epochs: of stage 1 and stage 2; learning-rate milestones move in proportion
        score: what tells unknown images (`oltr methods` lists scores); the method's own unless given
        threshold: where the score divides known from unknown, instead of a rate
        unknown_rate: share of known validation images that may be rejected; else the recipe's
        seed: same seed, data and machine: same result
        folds: cross-validation: so many runs in OUT/fold-1 ..., each image tested in one; mean and spread
        out: the run folder; runs/SOURCE-METHOD unless given
        resume: go on with an interrupted run in --out, to the same result
        from_run: train a run anew with its own settings on its own data and all images that were collected
            in it since, under the class names of now; SOURCE is left out
        stage1_from: take stage 1 from this run, which trained it under the same settings
        changes: change one setting, e.g. --set stage2.lr=0.01 --set settings.memory=false
        devices: GPUs, or processes on a CPU
        nodes: machines
        workers: processes that read image files; as many as cores, at most 8, unless given
        cpu: train on the CPU although there is a GPU
        tensorboard: also log for TensorBoard, into the run folder
        dry_run: check what can be checked, say what would be done and stop
    """
    import torch

    from oltr.console import console, process_rank
    from oltr.data.broken import drop_broken
    from oltr.data.sources import read_source
    from oltr.files import check_writable
    from oltr.methods import METHODS, Method
    from oltr.training.choose import FEW, PHOTOS, choice_of, choose
    from oltr.training.configure import configure
    from oltr.training.run_folder import RunFolder
    from oltr.wording import count

    if from_run is not None:
        from oltr.cli.retrain import retrain

        data, rule = (source, group_by, folds, root), (score, threshold, unknown_rate)
        given = (*data, *rule, method, backbone, weights, teacher, image_size, stage1_from, workers)
        flags = (epochs, changes, dry_run, tensorboard, skip_broken, devices != 1, nodes != 1)
        if dry_run:
            raise UserError("--dry-run does not go together with --from.", try_this="--from RUN --out DIR")
        usual = recipe == "photos" and train_backbone == "auto" and not any(flags)
        if not usual or any(value not in ("", None) for value in given):
            raise UserError("--from takes source and settings from the run.", try_this="--from RUN --out DIR")
        retrain(from_run, out, seed, resume, cpu, as_json)
        return
    if not source:
        raise UserError("There is no SOURCE.", try_this="oltr train photos/, or oltr train --from RUN")
    for name, number, least in (("--devices", devices, 1), ("--nodes", nodes, 1), ("--workers", workers, 0)):
        if number is not None and number < least:
            raise UserError(f"{name} {number} is too small.", try_this=f"{name} {least} or more")

    learns = None if train_backbone == "auto" else train_backbone

    def configured(train_images: int) -> tuple[Choice, RunConfig]:
        gpu = not cpu and torch.cuda.is_available()
        choice = choose(recipe, method, backbone, weights, learns, train_images=train_images, gpu=gpu)
        if resume and out is not None and recipe == PHOTOS and (out / "run.yaml").is_file():
            choice = choice_of(RunFolder(out).config(), choice)
        return choice, configure(
            choice.recipe,
            choice.method,
            backbone=choice.backbone,
            weights=choice.weights,
            train_backbone=choice.train_backbone,
            teacher=teacher,
            image_size=image_size,
            epochs=epochs,
            seed=seed,
            changes=(*changes, *_decision(score, threshold, unknown_rate)),
        )

    config = configured(FEW)[1]  # names and values are checked before the images are looked for
    out = out or default_out(source, config.method)
    if process_rank() == 0 and (resume or folds is not None):
        check_writable(out)
    elif process_rank() == 0:
        RunFolder(out).check_free()
    manifest = read_source(source, root)
    if group_by is not None and folds is None:
        from oltr.data.group_split import split_by_group

        manifest = split_by_group(manifest, group_by)
    choice, config = configured(manifest.sizes()["train"])

    from oltr.distributed import leave
    from oltr.runs.train_run import train_run
    from oltr.training.options import TrainOptions
    from oltr.training.train import check_trainable

    if skip_broken:
        with console.progress("trying images") as progress:
            manifest = drop_broken(manifest, progress)
    if folds is None:
        console.notes(manifest.notes)
    check_trainable(manifest)
    if epochs and config.train_backbone == "none" and METHODS[config.method].fit is not Method.fit:
        console.warn(f"--epochs is not used: {config.method} fits its head to frozen features at once")
    elif len(epochs) == 2 and config.ends_frozen and METHODS[config.method].fit is not Method.fit:
        console.warn(f"--epochs: the second number is not used: {config.method} fits its head at once")
    elif len(epochs) == 1 and config.stage1.epochs and config.stage2 is not None:
        console.say(
            f"--epochs {epochs[0]} is stage 1; stage 2 keeps its {count(config.stage2.epochs, 'epoch')}"
        )
    if choice.reason:
        console.say(f"picked: {config.method} on {config.backbone}, {choice.reason}")
    if dry_run and folds is None:
        _tell_plan(config, manifest, out, as_json)
        return
    options = TrainOptions(
        resume=resume,
        stage1_from=stage1_from,
        devices=devices,
        nodes=nodes,
        tensorboard=tensorboard,
        accelerator="cpu" if cpu else "auto",
    )
    if workers is not None:
        options.workers = workers
    if folds is not None:
        from oltr.cli.folds import train_in_folds

        train_in_folds(config, manifest, folds, group_by, out, options, source, dry_run, as_json)
        return
    report = train_run(config, manifest, out, options, source)
    leave()
    if process_rank() > 0:
        return
    if report is None:
        console.say("no test images, so no report; the model is trained and saved")
    elif as_json:
        print(report.to_json(), end="")
    else:
        print(report.table().text())
    console.say(f"run folder: {out}")
    if manifest.skipped:
        console.say(f"images left out: {out / 'skipped.txt'}")
    if report is not None:
        console.say(f"a page of it: {shlex.join(['oltr', 'report', str(out)])}")


def _decision(score: str | None, threshold: float | None, unknown_rate: float | None) -> list[str]:
    """The changes of the configuration that --score, --threshold and --unknown-rate ask for."""
    changes = [] if score is None else [f"decision.score={score}"]
    if threshold is not None or unknown_rate is not None:
        values = ("threshold", threshold), ("unknown_rate", unknown_rate)
        changes += [f"decision.{name}={'null' if value is None else value}" for name, value in values]
    return changes


def default_out(source: str, method: str) -> Path:
    """runs/SOURCE-METHOD; of package.module:attribute the last part, which is a file name everywhere."""
    from oltr.data.sources import names_object

    data = source.rpartition(":")[2] if names_object(source) else Path(source).resolve().stem
    return Path("runs") / f"{data}-{method.rpartition(':')[2]}"


def _tell_plan(config: RunConfig, manifest: Manifest, out: Path, as_json: bool) -> None:
    """The whole configuration and what it would be trained on, once all that can be is checked."""
    import dataclasses

    import yaml

    from oltr.runs.dry_run import check_run

    checked = check_run(config, manifest)
    if as_json:
        data = {"classes": len(manifest.classes), "images": manifest.sizes()}
        print_json({"config": dataclasses.asdict(config), "data": data, "out": str(out), "checked": checked})
        return
    print(yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, default_flow_style=None).rstrip())
    sizes = ", ".join(f"{split} {n:,}" for split, n in manifest.sizes().items())
    print(f"# {len(manifest.classes):,} classes; images: {sizes}")
    print(f"# checked: {', '.join(checked)}")
    print(f"# would be trained into {out}, which can be written")
