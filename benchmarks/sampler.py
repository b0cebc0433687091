"""The class-aware sampler that goes on from epoch to epoch, beside one that starts anew each epoch.

    python benchmarks/sampler.py c100.pack --out benchmarks/results/sampler.json

Methods class-aware and oltr; the four runs of a seed share one stage 1, so that they differ in stage 2 alone.
`seen` is the deviation of how often an image of the largest class is seen in stage 2. Starting anew was the
form of all results before 16 November 2026.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from record import record

from oltr.cli.main import main as command_line
from oltr.config import RunConfig
from oltr.data import batches
from oltr.data.sources import read_source
from oltr.runs.trained_run import TrainedRun
from oltr.samplers import class_aware, shuffle

FORMS, METHODS = ("going on", "starting anew"), ("class-aware", "oltr")
CLOSED, OPEN = ("overall", "many", "medium", "few"), ("f_measure", "auroc")


def starting_anew(
    labels: np.ndarray, length: int, key: Sequence[int], images_per_class: int = 1
) -> np.ndarray:
    """The first epoch of a walk of its own, for every epoch."""
    return class_aware(labels, length, (*key, 0), images_per_class)


def train_here(form: str, words: list[str]) -> None:
    """`oltr train` in this process, with that sampler."""
    form_of = dict(zip(FORMS, (class_aware, starting_anew), strict=True))
    batches.SAMPLERS = {"shuffle": shuffle, "class-aware": form_of[form]}  # type: ignore[assignment]
    command_line(["train", *words])


def train(source: Path, form: str, method: str, seed: int, folder: Path, extra: list[str]) -> None:
    """One run in a process of its own; all of a seed but the first begin with the stage 1 of the first."""
    out, first = (folder / f"{kind}-{name}-{seed}" for kind, name in ((form, method), (FORMS[0], METHODS[0])))
    words = [str(source), "--method", method, "--seed", str(seed), "--out", str(out), *extra]
    words += [] if out == first else ["--stage1-from", str(first)]
    command = [sys.executable, __file__, "--train", form, *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])


def measured(folder: Path, form: str, method: str, seed: int) -> dict[str, Any]:
    """A row: what report.json says, and how unevenly images were seen."""
    run = TrainedRun(folder / f"{form}-{method}-{seed}")
    report = json.loads((run.path / "report.json").read_text())
    return {
        "sampler": form,
        "method": method,
        "seed": seed,
        **{f"closed_{name}": report["closed"][name] for name in CLOSED},
        **{f"open_{name}": report.get("open", {}).get(name) for name in OPEN},
        "seen": round(seen(read_source(run.facts["source"]).labels("train"), form, run.config), 2),
    }


def seen(labels: np.ndarray, form: str, config: RunConfig) -> float:
    """The deviation of how often an image of the largest class is seen in stage 2."""
    stage, sampler = config.stage(2), class_aware if form == FORMS[0] else starting_anew
    length = len(labels) // stage.batch_size * stage.batch_size
    counts = np.zeros(len(labels))
    for epoch in range(stage.epochs):
        order = sampler(labels, length, (config.seed, 2, epoch), stage.images_per_class)
        counts += np.bincount(order, minlength=len(labels))
    return float(counts[labels == np.bincount(labels).argmax()].std())


def main() -> None:
    """Train, measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="The class-aware sampler going on, and starting anew.")
    parser.add_argument("source", type=Path)
    parser.add_argument("--recipe", default="cifar100-lt-100")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0 on")
    parser.add_argument("--at-once", type=int, default=9, help="trainings side by side")
    parser.add_argument("--epochs", nargs="+", default=[])
    parser.add_argument("--runs", type=Path, help="where the runs stay; nowhere without")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    extra = ["--recipe", arguments.recipe] + (["--epochs", *arguments.epochs] if arguments.epochs else [])
    seeds, pairs = range(arguments.seeds), [(form, method) for method in METHODS for form in FORMS]
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(arguments.at_once) as pool:
        folder, rows = arguments.runs or Path(temporary), []
        for some in (pairs[:1], pairs[1:]):
            runs = [(form, method, seed) for form, method in some for seed in seeds]
            waiting = [pool.submit(train, arguments.source, *run, folder, extra) for run in runs]
            for run, done in zip(runs, waiting, strict=True):
                done.result()
                rows.append(measured(folder, *run))
                record(arguments.out, rows, recipe=arguments.recipe, source=arguments.source.name)
    numbers = [name for name in rows[0] if name not in ("sampler", "method", "seed")]
    print(f"{'sampler':<15}{'method':<13}" + "".join(f"{name:>17}" for name in numbers))
    for form, method in pairs:
        own = [row for row in rows if (row["sampler"], row["method"]) == (form, method)]
        columns = [[row[name] for row in own] for name in numbers]
        cells = [
            "–" if None in c else f"{statistics.mean(c):.4f}±{statistics.pstdev(c):.4f}" for c in columns
        ]
        print(f"{form:<15}{method:<13}" + "".join(f"{cell:>17}" for cell in cells))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train_here(sys.argv[2], sys.argv[3:])
    else:
        main()
