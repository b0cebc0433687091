"""How long a whole `oltr train` of CIFAR-100-LT takes, from typing to the report, and where the time goes.

    python benchmarks/cifar.py --out benchmarks/results/cifar.json                 # made-up pixels, one GPU
    python benchmarks/cifar.py c100.pack --seeds 3                                 # a real pack
    python benchmarks/cifar.py c100.pack --seeds 3 --set precision=float32 compile=never   # no fast paths
    python benchmarks/cifar.py --epochs 1 --methods plain                          # a CPU, one epoch

The recipe is cifar100-lt-100: ResNet-32, batch 128, 200 epochs, validation and a checkpoint after each.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from record import record

from oltr.data.longtail import exponential_counts
from oltr.data.manifest import Manifest
from oltr.data.pack import write_pack_from

PER_CLASS = {"val": 10, "test": 100}
OPEN = 10_000


def made_up_pack(folder: Path) -> Path:
    """Noise in the shape of CIFAR-100-LT, imbalance 100, with TinyImageNet as open set."""
    rows = []
    for c, size in enumerate(exponential_counts(100, 500, 100).tolist()):
        for split, number in ({"train": size} | PER_CLASS).items():
            rows += [(f"{split}/{c}/{n}", f"class {c}", split) for n in range(number)]
    rows += [(f"open/{n}", "", "open") for n in range(OPEN)]
    manifest = Manifest.build(pd.DataFrame(rows, columns=["path", "label", "split"]), folder)
    rng = np.random.default_rng(0)
    pixels = (rng.integers(0, 256, (32, 32, 3), dtype=np.uint8) for _ in rows)
    return write_pack_from(manifest, pixels, 32, folder / "made-up.pack")


def measure(
    source: Path, method: str, seed: int, epochs: list[str], changes: list[str], folder: Path
) -> dict:
    """One training run in a process of its own."""
    out = folder / f"{method}-{seed}"
    command = [sys.executable, "-m", "oltr.cli.main", "train", str(source), "--recipe", "cifar100-lt-100"]
    command += ["--method", method, "--seed", str(seed), "--out", str(out)]
    command += ["--epochs", *epochs] if epochs else []
    for change in changes:
        command += ["--set", change]
    began = time.time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    total = time.time() - began
    with (out / "metrics.csv").open() as file:
        seconds = [float(row["seconds"]) for row in csv.DictReader(file)]
    report = json.loads((out / "report.json").read_text())
    return {
        "method": method,
        "seed": seed,
        "epochs": len(seconds),
        "total_seconds": round(total, 1),
        # classes.json is written when imports and data are there and training is about to begin.
        "start_seconds": round((out / "classes.json").stat().st_mtime - began, 1),
        "training_seconds": round(sum(seconds), 1),
        "median_epoch_seconds": round(float(np.median(seconds)), 3),
        "closed": report["closed"],
    }


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="How long a whole `oltr train` of CIFAR-100-LT takes.")
    parser.add_argument("source", type=Path, nargs="?", help="a pack; made-up pixels without")
    parser.add_argument("--methods", nargs="+", default=["plain", "oltr"])
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0 on")
    parser.add_argument("--epochs", nargs="+", default=[])
    parser.add_argument("--set", nargs="+", default=[], dest="changes", help="changes to the recipe")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = arguments.source or made_up_pack(Path(folder))
        print(
            f"{'method':<14}{'seed':>5}{'epochs':>8}{'total s':>10}{'start s':>10}{'training s':>12}"
            f"{'s/epoch':>10}{'overall':>10}"
        )
        for method, seed in itertools.product(arguments.methods, range(arguments.seeds)):
            row = measure(source, method, seed, arguments.epochs, arguments.changes, Path(folder))
            rows.append(row)
            print(
                f"{method:<14}{seed:>5}{row['epochs']:>8}{row['total_seconds']:>10}{row['start_seconds']:>10}"
                f"{row['training_seconds']:>12}{row['median_epoch_seconds']:>10}"
                f"{row['closed']['overall']:>10.2%}",
                flush=True,
            )
            pixels = "made up" if arguments.source is None else arguments.source.name
            record(arguments.out, rows, pixels=pixels, changes=arguments.changes)


if __name__ == "__main__":
    main()
