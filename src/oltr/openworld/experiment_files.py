"""The loop experiment as files, and as a table on the screen."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from oltr.figures.loop_curves import LoopCurve, loop_figure
from oltr.figures.save import save_figure
from oltr.files import atomic_write
from oltr.openworld.experiment import Experiment
from oltr.runs.tables import MISSING, Table

COLUMNS = ("labels", "accuracy", "accuracy_images", "accuracy_new", "unknown_recall", "known_rejected")
TITLES = ("labels", "mean over classes", "over images", "new classes", "unknown found", "known rejected")


def write_experiment(found: Experiment, out: Path) -> None:
    """loop.json, loop.csv, loop.svg and loop.png in the folder `out`."""
    with atomic_write(out / "loop.json") as part:
        part.write_text(json.dumps(found.to_dict(), indent=1) + "\n", encoding="utf-8")
    rows = [
        {"strategy": name, "seed": seed, **asdict(week)}
        for name, seeds in found.results.items()
        for seed, one in enumerate(seeds)
        for week in one
    ]
    with atomic_write(out / "loop.csv") as part:
        pd.DataFrame(rows).to_csv(part, index=False, lineterminator="\n")
    figure = loop_figure(curves(found))
    for kind in ("svg", "png"):
        save_figure(figure, out / f"loop.{kind}")


def curves(found: Experiment) -> list[LoopCurve]:
    """A curve for each strategy."""
    return [
        LoopCurve(
            name,
            np.array([[week.labels for week in one] for one in seeds], dtype=np.float64),
            np.array([[week.accuracy for week in one] for one in seeds]),
        )
        for name, seeds in found.results.items()
    ]


def table(found: Experiment) -> str:
    """After the last week, mean over the seeds, in percent but for the labels."""
    rows = []
    for name in found.results:
        values = [found.last(name, column) for column in COLUMNS]
        cells = [f"{values[0].mean():,.0f}"] + [_percent(value) for value in values[1:]]
        rows.append([name, *cells])
    seeds = len(next(iter(found.results.values())))
    groups = [("", ("strategy", "labels")), ("accuracy", TITLES[1:4]), ("rejected", TITLES[4:])]
    title = f"After {found.weeks} weeks, held-out images of the classes seen; mean of {seeds} seeds, percent"
    return Table(title, groups, rows).text()


def _percent(values: np.ndarray) -> str:
    return MISSING if np.isnan(values).all() else f"{100 * np.nanmean(values):.1f}"
