"""What a step of `oltr2` costs beside plain's under the modern recipe, by views and experts.

    python benchmarks/modern_step.py --out benchmarks/results/modern-step.json    # one GPU, or a CPU
    python benchmarks/modern_step.py --profile "oltr2, 3 views"                   # the kernels of one of them

Whole steps of the library on made-up images of CIFAR-100-LT's size and classes, with augmentation, mixing,
averaged weights and deterministic algorithms as a run has them: medians of turns that alternate.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch
from record import record

from oltr.data.augment import Augment
from oltr.data.batches import TrainBatches
from oltr.data.image_access import Images
from oltr.data.longtail import exponential_counts
from oltr.device import best_device
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.ema import WeightAverage
from oltr.training.frozen import freeze
from oltr.training.optimizer import make_optimizer
from oltr.training.processes import make_deterministic
from oltr.training.schedule import LearningRates
from oltr.training.step import BatchLoss, Step

ONE, TWO = ["stage1.views=1", "stage1.mix=none"], ["stage1.views=2"]
CASES = {
    "plain, 1 view": ("plain", ONE),
    "oltr2, 1 view": ("oltr2", ONE),
    "plain, 2 views": ("plain", TWO),
    "oltr2, 2 views": ("oltr2", TWO),
    "oltr2, 3 views": ("oltr2", []),
    "oltr2, 3 views, mosaics": ("oltr2", ["stage1.mosaics=0.5"]),
    "oltr2, 3 views, 3 experts": ("oltr2", ["settings.experts=3"]),
}
TURNS, STEPS = 7, 40


class Measured:
    """The steps of one case, ready to be timed."""

    def __init__(self, method_name: str, changes: list[str], device: torch.device):
        config = configure("cifar100-lt-100-modern", method_name, changes=changes)
        counts = torch.tensor(exponential_counts(100, 500, 100))
        stage, self.device = config.stage1, device
        method = build_method(config, counts).to(device)
        network = build_network(config, method, 1).to(device, memory_format=torch.channels_last).train()
        freeze(network, stage, config.data.image_size)
        optimizer = make_optimizer(network, stage, fused=device.type == "cuda")
        self.rates = LearningRates(optimizer, stage, device)
        self.rates.start_epoch(0, STEPS)
        loss = BatchLoss(method, 1, network, Augment(config.data, device), precision="auto", config=stage)
        average = WeightAverage(network, stage.ema)
        self.step = Step(loss, optimizer, average=average, graph=device.type == "cuda")
        labels = np.repeat(np.arange(len(counts)), counts)
        pixels = torch.randint(0, 256, (len(labels), 32, 32, 3), dtype=torch.uint8)
        images = Images(32, labels, np.arange(len(labels)), pixels.to(device))
        self.batches = cycle(list(islice(TrainBatches(images, stage, (0, 1, 0), device, 0, config.data), 8)))
        self.run(5)

    def run(self, steps: int) -> float:
        """Milliseconds a step."""
        self._wait()
        began = time.perf_counter()
        for number, batch in enumerate(islice(self.batches, steps)):
            self.rates.set(number)
            self.step(batch)
        self._wait()
        return (time.perf_counter() - began) * 1000 / steps

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="Steps of the modern recipe.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--profile", choices=CASES, help="the kernels of one case instead")
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    make_deterministic()
    device = best_device()
    if arguments.profile:
        measured = Measured(*CASES[arguments.profile], device)
        with torch.profiler.profile() as profiled:
            measured.run(arguments.steps)
        by = "self_cuda_time_total" if device.type == "cuda" else "self_cpu_time_total"
        print(profiled.key_averages().table(sort_by=by, row_limit=40, max_name_column_width=90))
        return
    cases = {name: Measured(*case, device) for name, case in CASES.items()}
    turns = [{name: case.run(arguments.steps) for name, case in cases.items()} for _ in range(TURNS)]
    rows = []
    for name in cases:
        ratio = statistics.median(turn[name] / turn["plain, 1 view"] for turn in turns)
        milliseconds = statistics.median(turn[name] for turn in turns)
        rows.append({"case": name, "ms": round(milliseconds, 3), "ratio": round(ratio, 3)})
        print(f"{name:<28}{rows[-1]['ms']:>9.2f} ms{rows[-1]['ratio']:>7.2f}", flush=True)
    record(arguments.out, rows, device, recipe="cifar100-lt-100-modern", batch=128)


if __name__ == "__main__":
    main()
