"""What collecting the outputs of a split costs beside the forward pass alone.

    python benchmarks/inference.py --out benchmarks/results/inference.json   # one GPU: ImageNet-LT's test set
    python benchmarks/inference.py --small                                   # any CPU

Forward: the network on one batch of views that lies ready on the device, as often as the images fill it.
Input: the same on all images in turn, which are on the device as uint8 and are gathered and normalised
there. Whole: `forward_batches` and `on_host`, which also bring logits, features and the rest to the host.
Times are medians of the rounds, the three in turn. Some of the logits are compared with those of the network
called directly.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import record
from torch import Tensor

from oltr.data.augment import Augment
from oltr.data.batches import EvalBatches
from oltr.data.image_access import Images
from oltr.nn.backbone import Backbone
from oltr.nn.network import Network
from oltr.training.build import build_method
from oltr.training.configure import configure
from oltr.training.inference import forward_batches, on_host
from oltr.training.precision import autocast

ROUNDS, BATCH = 3, 256
COMPARED = 8  # batches
COLUMNS = {
    "method": "method",
    "forward s": "forward_seconds",
    "input s": "input_seconds",
    "whole s": "whole_seconds",
    "input ratio": "input_ratio",
    "whole ratio": "ratio",
    "images/s": "images_per_second",
    "difference": "largest_difference",
}


def make_network(name: str, classes: int, size: int, device: torch.device) -> tuple[Network, Augment]:
    """A method's last network with random weights, and what prepares its images."""
    torch.manual_seed(0)
    config = configure("imagenet-lt", name, image_size=size)
    method = build_method(config, torch.full((classes,), 100))
    network = method.build_stage1(Backbone(config.backbone, size))
    if name == "oltr":
        network = method.build_stage2(network)
        centroids = torch.randn(classes, network.direct_feature.dims)
        method.on_stage_start(2, network, lambda: centroids)
    return network.to(device).to(memory_format=torch.channels_last).eval(), Augment(config.data, device)


class Measured:
    """Three ways through all images, from the least work to the most."""

    def __init__(self, name: str, classes: int, images: Images, device: torch.device):
        self.network, self.augment = make_network(name, classes, images.size, device)
        self.images, self.device = images, device

    def batches(self) -> EvalBatches:
        return EvalBatches(self.images, self.augment, BATCH, self.device, workers=0)

    @torch.inference_mode()
    def forward(self) -> None:
        views = next(iter(self.batches()))[0]
        for start in range(0, len(self.images), BATCH):
            with autocast(self.device, "auto"):
                self.network(views[: len(self.images) - start])

    @torch.inference_mode()
    def input(self) -> None:
        for views, _ in self.batches():
            with autocast(self.device, "auto"):
                self.network(views)

    def whole(self) -> dict[str, Tensor]:
        """Every part of the outputs, for all images: N×…"""
        outputs = forward_batches(
            self.network, self.images, self.augment.config, self.device, precision="auto", batch_size=BATCH
        )
        whole: dict[str, Tensor] = {}
        done = 0
        for output in on_host(outputs, self.device):
            for name, part in output._asdict().items():
                if part is not None:
                    if name not in whole:
                        whole[name] = torch.empty(len(self.images), *part.shape[1:])
                    whole[name][done : done + len(part)] = part
            done += len(output.direct_feature)
        return whole

    @torch.inference_mode()
    def largest_difference(self) -> float:
        """Between collected logits and those of the network called on the same batches, over some of them."""
        whole = self.whole()["logits"]
        starts = np.arange(0, len(self.images), BATCH)
        worst = 0.0
        for start in np.random.default_rng(0).permutation(starts)[:COMPARED].tolist():
            numbers = np.arange(start, min(start + BATCH, len(self.images)))
            (pixels,) = self.images.batches([numbers], self.device, 0)
            with autocast(self.device, "auto"):
                logits = self.network(self.augment.evaluate(pixels)).logits
            worst = max(worst, float((logits.float().cpu() - whole[numbers]).abs().max()))
        return worst


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """How long one pass takes."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def measure(name: str, classes: int, images: Images, device: torch.device) -> dict[str, Any]:
    """The three of one method, in turn."""
    measured = Measured(name, classes, images, device)
    works = {"forward": measured.forward, "input": measured.input, "whole": measured.whole}
    difference = measured.largest_difference()  # this also warms up
    rounds = [{key: seconds(work, device) for key, work in works.items()} for _ in range(ROUNDS)]
    row: dict[str, Any] = {"method": name, "images": len(images), "classes": classes, "batch": BATCH}
    row |= {"image_size": images.size, "largest_difference": difference}
    for key in works:
        row[f"{key}_seconds"] = statistics.median(turn[key] for turn in rounds)
    row["input_ratio"] = row["input_seconds"] / row["forward_seconds"]
    row["ratio"] = row["whole_seconds"] / row["forward_seconds"]
    row["images_per_second"] = round(len(images) / row["whole_seconds"])
    row["rounds"] = [{key: round(value, 4) for key, value in turn.items()} for turn in rounds]
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="Collecting outputs beside the forward pass alone.")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--images", type=int)
    parser.add_argument("--classes", type=int)
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = torch.device("cpu" if arguments.small or not torch.cuda.is_available() else "cuda:0")
    number, classes, size = (256, 100, 64) if device.type == "cpu" else (50_000, 1_000, 224)
    number, classes = arguments.images or number, arguments.classes or classes
    size = arguments.image_size or size
    torch.manual_seed(0)
    pixels = torch.randint(0, 256, (number, size, size, 3), dtype=torch.uint8, device=device)
    labels = np.random.default_rng(0).integers(classes, size=number)
    images = Images(size, labels, np.arange(number), pixels)
    print(f"{number:,} images of {size} px, {classes:,} classes, batches of {BATCH}")
    print(("{:>12}" * len(COLUMNS)).format(*COLUMNS))
    rows = []
    for name in ("plain", "oltr"):
        rows.append(measure(name, classes, images, device))
        cells = [rows[-1][key] for key in COLUMNS.values()]
        print("".join(f"{f'{c:.3f}' if isinstance(c, float) else c:>12}" for c in cells), flush=True)
        record(arguments.out, rows, device)


if __name__ == "__main__":
    main()
