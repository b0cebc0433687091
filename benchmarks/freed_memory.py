"""What a network gains on a CPU where the memory of freed tensors is reused (`oltr.device`).

    python benchmarks/freed_memory.py --out benchmarks/results/freed-memory.json     # Linux, any CPU

Each case runs in a process of its own, in turns with malloc as it is and with freed memory reused; images per
second are medians of the turns. Training: forward and backward. Inference: the frozen backbone of the photos
recipe, as `oltr train photos/` and `oltr predict` use it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from record import record

from oltr.device import MALLOC_VARIABLES, reuse_freed_memory
from oltr.training.build import build_method, build_network
from oltr.training.configure import configure
from oltr.training.precision import autocast

CPU = torch.device("cpu")

CASES = {  # recipe, precision, images, side, training
    "demo, ResNet-10 of half width, training": ("glyphs", "float32", 128, 32, True),
    "CIFAR, ResNet-32, three views, training": ("cifar100-lt-100-modern", "float32", 384, 32, True),
    "the same in bfloat16": ("cifar100-lt-100-modern", "bfloat16", 384, 32, True),
    "photos from scratch, ResNet-10 at 128 px, training": ("photos", "float32", 64, 128, True),
    "photos, EfficientNet-Lite0 at 288 px, inference": ("photos-frozen", "bfloat16", 32, 288, False),
    "that in float32": ("photos-frozen", "float32", 32, 288, False),
}
TURNS, SECONDS = 3, 4


def images_per_second(case: str, reused: bool) -> dict[str, float]:
    """The rate of one case in this process, and its peak memory."""
    if reused and not reuse_freed_memory():
        sys.exit("malloc's parameters cannot be set here: not glibc, or the environment sets them")
    recipe, precision, images, side, training = CASES[case]
    torch.manual_seed(0)
    config = configure(recipe, "oltr2", changes=[f"precision={precision}"])
    network = build_network(config, build_method(config, torch.full((100,), 100)), 1)
    network = network.to(memory_format=torch.channels_last).train(training)
    views = torch.randn(images, 3, side, side).contiguous(memory_format=torch.channels_last)

    def run() -> None:
        with torch.set_grad_enabled(training), autocast(CPU, precision):
            logits = network(views).logits
        if training:
            logits.float().square().mean().backward()
            network.zero_grad()

    for _ in range(3):
        run()
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        run()
        done += images
    seconds = time.perf_counter() - began
    return {"rate": done / seconds, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10}


def measured(case: str, reused: bool) -> dict[str, float]:
    """The same in a new process."""
    command = [sys.executable, __file__, "--case", case, *(["--reused"] if reused else [])]
    own = {name: value for name, value in os.environ.items() if name not in MALLOC_VARIABLES}
    return json.loads(subprocess.run(command, env=own, check=True, stdout=subprocess.PIPE).stdout)


def _medians(turns: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--reused", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(images_per_second(asked.case, asked.reused)))
        return
    rows = []
    print(f"{'images/s':50}  default  reused   ratio   peak MiB")
    for case in CASES:
        turns = [(measured(case, False), measured(case, True)) for _ in range(TURNS)]
        before, after = (_medians(each) for each in zip(*turns, strict=True))
        ratio = after["rate"] / before["rate"]
        print(
            f"{case:50}  {before['rate']:8.1f}{after['rate']:8.1f}{ratio:8.2f}"
            f"   {before['mib']:.0f}, {after['mib']:.0f}",
            flush=True,
        )
        rows.append(
            {
                "case": case,
                "images_per_second": round(before["rate"], 1),
                "images_per_second_reused": round(after["rate"], 1),
                "ratio": round(ratio, 2),
                "peak_mib": round(before["mib"]),
                "peak_mib_reused": round(after["mib"]),
            }
        )
        record(asked.out, rows, CPU)


if __name__ == "__main__":
    main()
