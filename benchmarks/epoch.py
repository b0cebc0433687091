"""An epoch end to end, up to ImageNet-LT's size, beside the rate of its steps alone.

    python benchmarks/epoch.py --out benchmarks/results/epoch.json      # one GPU: to 115,846 images of 256 px
    python benchmarks/epoch.py --small                                  # any CPU

Made-up pixels lie on the device, as a pack does that fits there. The epoch is trained by the library's own
task and trainer: sampling, gathering, augmentation to 224 px, forward, loss, backward, update. The step alone
is the same step without augmentation on one batch again and again.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from oltr.training.task import Task
from oltr.training.trainer import make_trainer
from record import record
from step import Measured

from oltr.data.image_access import Images
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.options import TrainOptions, training_device

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


def epoch_seconds(method_name: str, number: int, sizes: dict[str, int], device: torch.device) -> list[float]:
    """Training seconds of each epoch of the method's last stage on so many images."""
    config = configure(
        "imagenet-lt",
        method_name,
        image_size=sizes["size"],
        changes=[f"stage{n}.batch_size={sizes['batch']}" for n in (1, 2) if method_name == "oltr" or n == 1],
    )
    counts = torch.full((sizes["classes"],), max(number // sizes["classes"], 1))
    method, stage = build_method(config, counts), config.num_stages
    network = build_network(config, method, stage)
    method.on_stage_start(stage, network, lambda: torch.randn(sizes["classes"], network.direct_feature.dims))
    images = {"train": made_up(number, sizes["classes"], sizes["stored"], device)}
    rows: list[dict[str, Any]] = []
    network.to(memory_format=torch.channels_last)
    task = Task(method, network, config, stage, images, on_epoch=lambda task, row: rows.append(row))
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(device, TrainOptions(), Path(folder), stage, EPOCHS, validate=False)
        trainer.fit(task)
    return [row["seconds"] for row in rows]


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="An epoch end to end at ImageNet-LT's size.")
    parser.add_argument("--small", action="store_true", help="a size for a CPU")
    parser.add_argument("--methods", nargs="+", default=["plain", "oltr"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    options = TrainOptions(accelerator="cpu" if arguments.small else "auto")
    device, sizes = training_device(options), SMALL if arguments.small else FULL
    rows = []
    print(f"{'method':<8}{'images':>9}{'first s':>9}{'epoch s':>9}{'images/s':>10}{'step alone':>12} share")
    for name in arguments.methods:
        alone = Measured(name, sizes["batch"], sizes["classes"], sizes["size"], device)
        steps = 10 if arguments.small else 200
        step_rate = sizes["batch"] * 1000 / alone.run(steps)
        del alone
        for number in IMAGES["small" if arguments.small else "full"]:
            seconds = epoch_seconds(name, number, sizes, device)
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
