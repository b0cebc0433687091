"""ODIN's temperature and noise on all images of a run, and what tuning them on a few images gives.

    python benchmarks/odin.py runs/open-detection/plain-0 --out benchmarks/results/odin.json

The grid is that of `tune: open`. Tuning is repeated on random draws of test and open images: in each the
setting of least detection error is chosen on the drawn images and measured on the others, as is the fixed.
The fixed setting is also measured in float32, where the run's precision is another.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from itertools import product
from pathlib import Path
from typing import Any

import torch
from record import record
from torch import Tensor

from oltr.data.sources import read_source
from oltr.metrics import detection
from oltr.openset import Odin
from oltr.runs.own_data import open_for
from oltr.runs.split_outputs import compute_outputs
from oltr.runs.trained_run import TrainedRun
from oltr.runs.tune_odin import NOISES, TEMPERATURES

FIXED, SOFTMAX = Odin(), Odin(1.0, 0.0)
DRAWS = 200
MEASURES = ("fpr95_known", "detection_error", "detection_error_min", "auroc", "aupr_known", "aupr_unknown")
Sides = tuple[Tensor, Tensor]  # unknown scores of test and open images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", help="where the run's data are now")
    parser.add_argument("--tuned-on", type=int, nargs="+", default=[1000, 5000], help="images of either kind")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    run = TrainedRun(asked.run)
    if asked.source:
        run.manifest = read_source(asked.source)
    facts = {"run": run.config.method, "backbone": run.config.backbone, "accuracy": run.accuracy}
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(row)
        record(asked.out, rows, run.device, **facts)
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})

    grid: dict[Odin, Sides] = {}
    for score in settings():
        grid[score] = sides(run, score)
        keep({"kind": "setting", **named(score), **numbers(grid[score])})
    for images in asked.tuned_on:
        keep({"kind": "tuning", **tuning(grid, images)})
    keep({"kind": "float32", **named(FIXED), **numbers(sides(run, FIXED, precision="float32"))})


def settings() -> list[Odin]:
    """The grid, the fixed setting and that of ODIN's authors in it; without noise, T alone."""
    every = [Odin(temperature, noise) for temperature, noise in product(TEMPERATURES, NOISES)]
    return list(dict.fromkeys([SOFTMAX, FIXED, *every]))


def sides(run: TrainedRun, score: Odin, precision: str | None = None) -> Sides:
    """The score of every test and open image, on the CPU."""
    if precision is not None:
        run.config = dataclasses.replace(run.config, precision=precision)
    opened = open_for(run, run.manifest, ("test", "open"))
    what = f"T = {score.temperature:g}, ε = {score.noise:g}"
    known, unseen = (compute_outputs(run, opened[split], score, what) for split in ("test", "open"))
    return score(*known.inputs).cpu(), score(*unseen.inputs).cpu()


def named(score: Odin) -> dict[str, float]:
    return {"temperature": score.temperature, "noise": score.noise}


def numbers(found: Sides) -> dict[str, float]:
    return {name: getattr(detection, name)(*found) for name in MEASURES}


def tuning(grid: dict[Odin, Sides], images: int) -> dict[str, Any]:
    """What is chosen on so many images of either kind, and the errors on the others."""
    tuned, fixed, estimates, chosen = [], [], [], []
    size = [len(side) for side in grid[FIXED]]
    for seed in range(DRAWS):
        random = torch.Generator().manual_seed(seed)
        orders = [torch.randperm(n, generator=random) for n in size]

        def error(score: Odin, part: slice, orders: list[Tensor] = orders) -> float:
            return detection.detection_error(*(s[o[part]] for s, o in zip(grid[score], orders, strict=True)))

        errors = {score: error(score, slice(images)) for score in grid}
        best = min(errors, key=lambda score: errors[score])
        rest = slice(images, None)
        tuned.append(error(best, rest))
        fixed.append(error(FIXED, rest))
        estimates.append(errors[FIXED])
        chosen.append((best.temperature, best.noise))
    often = max(set(chosen), key=chosen.count)
    return {
        "images": images,
        "draws": DRAWS,
        "tuned": statistics.fmean(tuned),
        "tuned_deviation": statistics.stdev(tuned),
        "fixed": statistics.fmean(fixed),
        "worse_than_fixed": sum(a > b for a, b in zip(tuned, fixed, strict=True)) / DRAWS,
        "estimate_deviation": statistics.stdev(estimates),  # of one setting's error on the drawn images
        "settings_chosen": len(set(chosen)),
        "chosen_most": {"temperature": often[0], "noise": often[1], "share": chosen.count(often) / DRAWS},
    }


if __name__ == "__main__":
    main()
