"""`oltr loop`: what a few labels a week are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oltr.cli.options import SOURCE, Json, Root, Run, print_json


def loop(
    run: Run,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")],
    source: Annotated[str | None, tyro.conf.arg(metavar="SOURCE", help=SOURCE)] = None,
    root: Root = None,
    weeks: int = 8,
    labels: int | None = None,
    seeds: int = 3,
    as_json: Json = False,
) -> None:
    """Simulate weeks of images with new classes among them, and a person who answers a few questions a week.

    The test and open images that the run has not learned from arrive in weeks; a part of every class is held
    out for measuring. Images to ask about are chosen by discovering, at random or by uncertainty; labelling
    everything is beside them. Each answer is learned at once, by a new head on the run's features.
    DIR gets loop.json, loop.csv, and the curves as loop.svg and loop.png.

    Args:
        out: the folder for the result
        source: labelled images instead of the run's own test and open images
        weeks: how many
        labels: questions a week; a quarter of what arrives unless given
        seeds: how often to draw the weeks anew
    """
    from oltr.files import check_writable
    from oltr.openworld.experiment import experiment
    from oltr.openworld.experiment_files import table, write_experiment
    from oltr.runs.trained_run import TrainedRun

    check_writable(out / "loop.json")
    found = experiment(TrainedRun(run), source, root, weeks, labels, seeds)
    write_experiment(found, out)
    if as_json:
        print_json(found.to_dict())
    else:
        print(f"{table(found)}\ncurves: {out / 'loop.png'}")
