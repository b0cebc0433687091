"""`oltr suite`: a table or a sweep of the paper, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.identify import OptionalSource, ShotsFrom
from oltr.cli.options import SOURCE, Epochs, Json, Root, print_json
from oltr.cli.train import Changes


def suite(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE", help=SOURCE)] = None,
    seeds: int = 1,
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME [NAME ...]")] = (),
    recipe: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    epochs: Epochs = (),
    changes: Changes = (),
    alphas: Annotated[tuple[float, ...], tyro.conf.arg(metavar="NUMBER [NUMBER ...]")] = (),
    jobs: int = 1,
    out: Path | None = None,
    cpu: bool = False,
    dry_run: bool = False,
    root: Root = None,
    probes: OptionalSource = None,
    gallery: OptionalSource = None,
    distractors: OptionalSource = None,
    train: OptionalSource = None,
    shots_from: ShotsFrom = None,
    groups: Path | None = None,
    as_json: Json = False,
) -> int:
    """Train every row of a table, several seeds if wanted, and print it beside the published numbers.

    The same command resumes an interrupted suite; finished runs are not repeated. --out holds the table so
    far after every run: table.md, table.csv, suite.json, and bars.svg, bars.png of the finished rows. Exit
    code 1 if a run failed.
    A sweep adds its numbers and its figure: sweep.md, sweep.csv, sweep.json, sweep.svg, sweep.png.

    Args:
        name: imagenet-lt, places-lt, sun-lt, megaface, open-detection, ablation, cifar100-lt,
            cifar100-lt-modern, oltr2-ablation, oltr2-development, photos, glyphs; the sweeps
            sweep-threshold, sweep-open, sweep-longtail; or a YAML file
        seeds: how many, from 0 on
        methods: only the rows of these methods, or with these labels
        recipe: another setting than the suite's, e.g. cifar100-lt-50
        epochs: of each run in all, or of stage 1 and stage 2: for a quick look
        changes: change one setting of every run, e.g. --set weights=pretrained
        alphas: of sweep-longtail: the Pareto powers of the class sizes, smaller is more imbalanced
        jobs: runs side by side; each is an `oltr train` process of its own
        out: the folder for runs and table; runs/NAME unless given
        cpu: train on the CPU although there is a GPU
        dry_run: list the runs and which of them share stage 1, and stop
        probes: of megaface: the images to identify; this and the following as in `oltr identify`
        gallery: of megaface: images of the same people and of others
        distractors: of megaface: more images for the gallery
        train: of megaface: the training images that pseudo-shots are counted on; SOURCE unless given
        shots_from: of megaface: the same by another network: features of the probes and of training images
        groups: of megaface: a table of groups of probes
    """
    from oltr.console import console
    from oltr.suites.plan import IdentifySources, SuiteOptions, describe_suite

    options = SuiteOptions(
        name=name,
        source=source,
        root=root,
        seeds=seeds,
        methods=methods,
        recipe=recipe,
        epochs=epochs,
        changes=changes,
        alphas=alphas,
        jobs=jobs,
        out=out,
        cpu=cpu,
        faces=IdentifySources(probes, gallery, distractors, train, shots_from, groups),
    )
    if dry_run:
        outcome = describe_suite(options)
    else:
        from oltr.suites.run_suite import run_suite

        outcome = run_suite(options)
    if as_json:
        print_json(outcome.values)
    else:
        print(outcome.text)
    if outcome.files:
        console.say(f"written: {outcome.files}")
    for line in outcome.failed:
        console.warn(f"failed: {line}")
    return 1 if outcome.failed else 0
