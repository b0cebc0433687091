"""An epoch end to end, up to ImageNet-LT's size, beside the rate of its steps alone.

    python benchmarks/epoch.py --out benchmarks/results/epoch.json      # one GPU: to 115,846 images of 256 px
    python benchmarks/epoch.py --small                                  # any CPU

Made-up pixels lie on the device, as a pack does that fits there. The epoch is trained by the library's own
stage loop: sampling, gathering, augmentation to 224 px, forward, loss, backward, update; the checkpoints are
written, too. The step alone is the same step without augmentation on one batch again and again.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from record import record
from step import Measured

from oltr.console import console
from oltr.data.image_access import Images
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.fabric import Fabric, launch
from oltr.training.options import TrainOptions
from oltr.training.run_folder import RunFolder
from oltr.training.stage import Run, Stage

EPOCHS = 3  # the first compiles
FULL = {"classes": 1000, "stored": 256, "size": 224, "batch": 128}
SMALL = {"classes": 100, "stored": 73, "size": 64, "batch": 32}
IMAGES = {"full": [10_000, 115_846], "small": [256, 512]}


def made_up(images: int, classes: int, stored: int, device: torch.device) -> Images:
    """Noise, resident on the device."""
    pixels = torch.empty((images, stored, stored, 3), dtype=torch.uint8, device=device)
    for part in pixels.split(4096):
        part.random_(0, 256)
    labels = np.random.default_rng(0).integers(0, classes, images)
    return Images(stored, labels, np.arange(images), pixels, home="made-up pixels")


def epoch_seconds(method_name: str, number: int, sizes: dict[str, int], fabric: Fabric) -> list[float]:
    """Training seconds of each epoch of the method's last stage on so many images."""
    settings = (f"batch_size={sizes['batch']}", f"epochs={EPOCHS}")
    stages = (1, 2) if method_name == "oltr" else (1,)
    changes = [f"stage{stage}.{setting}" for stage in stages for setting in settings]
    config = configure("imagenet-lt", method_name, image_size=sizes["size"], changes=changes)
    counts = torch.full((sizes["classes"],), max(number // sizes["classes"], 1))
    method, stage = build_method(config, counts), config.num_stages
    network = build_network(config, method, stage)
    images = {"train": made_up(number, sizes["classes"], sizes["stored"], fabric.device)}
    with tempfile.TemporaryDirectory() as folder, console.silent():
        run = Run(config, method, RunFolder(folder), images, fabric)
        Stage(run, stage, network, saved=None).train()
    return [row["seconds"] for row in run.history]


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="An epoch end to end at ImageNet-LT's size.")
    parser.add_argument("--small", action="store_true", help="a size for a CPU")
    parser.add_argument("--methods", nargs="+", default=["plain", "oltr"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    fabric = launch(TrainOptions(accelerator="cpu" if arguments.small else "auto"))
    device, sizes = fabric.device, SMALL if arguments.small else FULL
    rows = []
    print(f"{'method':<8}{'images':>9}{'first s':>9}{'epoch s':>9}{'images/s':>10}{'step alone':>12} share")
    for name in arguments.methods:
        alone = Measured(name, sizes["batch"], sizes["classes"], sizes["size"], device)
        steps = 10 if arguments.small else 200
        step_rate = sizes["batch"] * 1000 / alone.run(steps)
        del alone
        for number in IMAGES["small" if arguments.small else "full"]:
            seconds = epoch_seconds(name, number, sizes, fabric)
            shown = number // sizes["batch"] * sizes["batch"]
            rate, share = shown / min(seconds[1:]), shown / min(seconds[1:]) / step_rate
            row = {"method": name, "images": number, **sizes, "epoch_seconds": seconds}
            row |= {"images_per_second": round(rate), "step_images_per_second": round(step_rate)}
            rows.append(row | {"share": round(share, 3)})
            print(
                f"{name:<8}{shown:>9,}{seconds[0]:>9.1f}{min(seconds[1:]):>9.2f}{rate:>10,.0f}"
                f"{step_rate:>12,.0f}{share:>7.2f}",
                flush=True,
            )
            record(arguments.out, rows, device)


if __name__ == "__main__":
    main()
