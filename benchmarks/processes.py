"""One process with two threads beside two processes with one thread each, on the same training.

    python benchmarks/processes.py --out benchmarks/results/processes.json

`oltr train` on drawn characters, both stages of OLTR, the global batch the same; the processes talk through
gloo. Rates are those of the epochs after a stage's first, medians over the turns, which alternate. The
network has no batch statistics, so its weights must agree up to rounding.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from safetensors.torch import load_file

from oltr.data.curate.glyphs import make_glyphs
from oltr.data.manifest import Manifest
from oltr.data.pack import write_pack_from
from oltr.training.run_folder import RunFolder, hardware, versions

CORES, TURNS, EPOCHS, BATCH, SIZE = 2, 5, 4, 64, 64
BACKBONE = "vit_tiny_patch16_224"
NOTE = "rates are of training steps alone, with other processes on the same cores as the load says"


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="One process beside two on the same training.")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    load, turns, differences = os.getloadavg()[0], [], []
    with tempfile.TemporaryDirectory() as folder:
        pack = characters(Path(folder))
        for turn in range(TURNS):
            runs = {number: Path(folder) / f"{turn}-{number}" for number in (1, 2)}
            turns.append({number: train(pack, run, number) for number, run in runs.items()})
            differences.append(largest_difference(runs[1], runs[2]))
    rates = {number: statistics.median(turn[number] for turn in turns) for number in (1, 2)}
    print(f"{'processes':>9}{'threads each':>14}{'images/s':>10}   of the turns; load before {load:.1f}")
    for number, rate in rates.items():
        spread = ", ".join(f"{turn[number]:.0f}" for turn in turns)
        print(f"{number:>9}{CORES // number:>14}{rate:>10.0f}   {spread}")
    print(f"ratio {rates[2] / rates[1]:.2f}; weights and memory differ by {max(differences):.1e} at most")
    if arguments.out is not None:
        result = {
            "benchmark": "processes.py",
            "date": date.today().isoformat(),
            "hardware": hardware(),
            "cores": os.cpu_count(),
            "versions": versions(),
            "load_before": round(load, 1),
            "load_after": round(os.getloadavg()[0], 1),
            "note": NOTE,
            "backbone": BACKBONE,
            "image_size": SIZE,
            "global_batch": BATCH,
            "epochs": [EPOCHS, EPOCHS],
            "images_per_second": {number: round(rate, 1) for number, rate in rates.items()},
            "turns": [{number: round(rate, 1) for number, rate in turn.items()} for turn in turns],
            "ratio": round(rates[2] / rates[1], 3),
            "largest_weight_difference": max(differences),
        }
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def characters(folder: Path) -> Path:
    """A small long-tailed set as a pack."""
    drawn = make_glyphs(
        known=20,
        open_classes=2,
        largest=80,
        smallest=5,
        val_per_class=2,
        test_per_class=2,
        open_per_class=2,
        size=SIZE,
    )
    return write_pack_from(Manifest.build(drawn.table, folder), drawn.images, SIZE, folder / "drawn.pack")


def train(pack: Path, out: Path, processes: int) -> float:
    """Images per second of a training by so many processes, which have two threads between them."""
    settings = (
        "keep=last",
        f"stage1.batch_size={BATCH}",
        f"stage2.batch_size={BATCH}",
        "stage1.lr=0.02",
        "stage1.classifier_lr=0.02",
    )
    words: Sequence[object] = (
        *("train", pack, "--recipe", "glyphs", "--method", "oltr", "--backbone", BACKBONE),
        *("--image-size", SIZE, "--epochs", EPOCHS, EPOCHS, "--cpu", "--devices", processes, "--out", out),
        *(word for setting in settings for word in ("--set", setting)),
    )
    subprocess.run(
        [sys.executable, "-m", "oltr.cli.main", *map(str, words)],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": str(CORES // processes)},
    )
    with RunFolder(out).metrics.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["epoch"]) > 1]
    return statistics.median(float(row["images_per_second"]) for row in rows)


def largest_difference(one: Path, other: Path) -> float:
    """Between any two weights of the runs after their last step."""
    a, b = (load_file(RunFolder(run).model) for run in (one, other))
    return max(float((a[name].double() - b[name].double()).abs().max()) for name in a)


if __name__ == "__main__":
    main()
