"""ODIN's temperature and noise on images of a run, and what tuning them on a few images gives.

    python benchmarks/odin.py runs/open-detection/plain-0 --out benchmarks/results/odin.json
    python benchmarks/odin.py RUN --sample 1000 --tuned-on 500 --precisions float32 bfloat16

The grid is that of `tune: open`, on all test and open images or on a random sample of either. Tuning is
repeated on random draws of these: in each the setting of least detection error is chosen on the drawn images
and measured on the others, as is the fixed. Every setting is measured in each of the precisions: a noise of
ε / std is about as large as the spacing of bfloat16 numbers.
"""

from __future__ import annotations

import argparse
import statistics
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import record
from torch import Tensor

from oltr.console import console
from oltr.data.sources import read_source
from oltr.metrics import detection
from oltr.openset import Odin
from oltr.runs.own_data import open_for
from oltr.runs.pictures import subset, views_of
from oltr.runs.trained_run import TrainedRun
from oltr.runs.tune_odin import NOISES, TEMPERATURES
from oltr.training.precision import autocast

FIXED, SOFTMAX_AT_1000 = Odin(), Odin(1000.0, 0.0)
DRAWS, BATCH = 200, 100
MEASURES = ("fpr95_known", "detection_error", "detection_error_min", "auroc", "aupr_known", "aupr_unknown")
SPLITS = ("test", "open")
Sides = tuple[Tensor, Tensor]  # unknown scores of test and open images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", help="where the run's data are now")
    parser.add_argument("--sample", type=int, help="so many random images of either kind instead of all")
    parser.add_argument("--tuned-on", type=int, nargs="+", default=[1000, 5000], help="images of either kind")
    parser.add_argument("--precisions", nargs="+", default=["float32"], help="tuning is in the first")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    run = TrainedRun(asked.run)
    if asked.source:
        run.manifest = read_source(asked.source)
    views, accuracy = sampled(run, asked.sample)
    images = {split: len(part) for split, part in zip(SPLITS, views, strict=True)}
    facts = {"run": run.method, "backbone": run.config.backbone, "images": images, "accuracy": accuracy}
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(row)
        record(asked.out, rows, run.device, **facts)
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})

    grids = {precision: grid_of(run, views, precision) for precision in asked.precisions}
    for precision, grid in grids.items():
        for score, found in grid.items():
            keep({"kind": "setting", "precision": precision, **named(score), **numbers(found)})
    for number in asked.tuned_on:
        keep(
            {"kind": "tuning", "precision": asked.precisions[0], **tuning(grids[asked.precisions[0]], number)}
        )


def sampled(run: TrainedRun, sample: int | None) -> tuple[list[Tensor], float]:
    """What the network sees of test and open images, on the CPU, and its accuracy on the former."""
    opened, random = open_for(run, run.manifest, SPLITS), np.random.default_rng(0)
    rows = [np.sort(random.permutation(len(opened[split].labels))[:sample]) for split in SPLITS]
    chosen = [subset(opened[split], some) for split, some in zip(SPLITS, rows, strict=True)]
    views = [torch.cat([part.cpu() for part in views_of(run, images)]) for images in chosen]
    names = {name: number for number, name in enumerate(run.class_names)}
    wanted = torch.tensor([names[run.manifest.classes[label]] for label in chosen[0].labels])
    with torch.no_grad():
        found = [
            run.network(part.to(run.device)).logits.argmax(dim=1).cpu() for part in views[0].split(BATCH)
        ]
    return views, float((torch.cat(found) == wanted).double().mean())


def grid_of(run: TrainedRun, views: list[Tensor], precision: str) -> dict[Odin, Sides]:
    """The score of every image under every setting; a gradient serves all noises of its temperature."""
    settings = [Odin(temperature, noise) for temperature, noise in product(TEMPERATURES, NOISES)]
    found: dict[Odin, list[list[Tensor]]] = {score: [[], []] for score in settings}
    std = torch.tensor(run.config.data.std, device=run.device).view(1, -1, 1, 1)
    network = run.network.eval().to(memory_format=torch.channels_last)
    done, total = 0, sum(map(len, views))
    with console.progress(f"the grid in {precision}") as progress:
        for side, part in enumerate(views):
            for batch in part.split(BATCH):
                x = batch.to(run.device, memory_format=torch.channels_last)
                with autocast(run.device, precision), torch.no_grad():
                    for temperature in TEMPERATURES:
                        moved = Odin(temperature, 1.0).change(
                            lambda x: network(x).logits, x, run.config.data.std
                        )
                        direction = ((x - moved) * std).round() / std  # the sign of the gradient over std
                        for score in (each for each in settings if each.temperature == temperature):
                            logits = network(x - score.noise * direction).logits
                            found[score][side].append(score(logits, logits).cpu())
                done += len(batch)
                progress(done, total)
    return {score: (torch.cat(known), torch.cat(unseen)) for score, (known, unseen) in found.items()}


def named(score: Odin) -> dict[str, float]:
    return {"temperature": score.temperature, "noise": score.noise}


def numbers(found: Sides) -> dict[str, float]:
    return {name: getattr(detection, name)(*found) for name in MEASURES}


def tuning(grid: dict[Odin, Sides], images: int) -> dict[str, Any]:
    """What is chosen on so many images of either kind, and the errors on the others."""
    tuned, fixed, estimates, gaps, chosen = [], [], [], [], []
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
        gaps.append(errors[FIXED] - errors[SOFTMAX_AT_1000])
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
        "difference_deviation": statistics.stdev(gaps),  # of two settings' difference there
        "settings_chosen": len(set(chosen)),
        "chosen_most": {"temperature": often[0], "noise": often[1], "share": chosen.count(often) / DRAWS},
    }


if __name__ == "__main__":
    main()
