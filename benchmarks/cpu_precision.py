"""What bfloat16 gains in training on a CPU: forward and backward pass of various networks, beside float32.

    python benchmarks/cpu_precision.py --out benchmarks/results/cpu-precision.json

Backbones alone, without augmentation, loss and update, on random numbers in the library's memory format; the
best of turns that alternate, after a first one that is not counted.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from record import record

from oltr.nn import Backbone
from oltr.training.precision import autocast, cpu_has_bfloat16

NETWORKS = {  # the side of the images
    "resnet32_cifar": 32,
    "resnet10_half": 32,
    "resnet10": 128,
    "resnet18": 128,
    "densenet121": 96,
    "regnety_002": 128,
    "convnext_atto": 128,
    "tf_efficientnet_lite0": 128,
    "mobilenetv3_small_100": 128,
    "vit_tiny_patch16_224": 224,
    "swin_tiny_patch4_window7_224": 224,
}
BATCH, TURNS = 16, 4


def seconds(network: Backbone, images: torch.Tensor, precision: str) -> float:
    """One forward and backward pass."""
    began = time.perf_counter()
    with autocast(images.device, precision, training=True):
        maps = network(images)
    maps.float().square().mean().backward()
    network.zero_grad()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description="bfloat16 and float32 in training on a CPU.")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    print(f"bfloat16 in this CPU: {cpu_has_bfloat16()}; {torch.get_num_threads()} threads")
    rows = []
    for name, size in NETWORKS.items():
        network = Backbone(name, size).to(memory_format=torch.channels_last).train()
        images = torch.randn(BATCH, 3, size, size).to(memory_format=torch.channels_last)
        turns = [[seconds(network, images, each) for each in ("float32", "auto")] for _ in range(TURNS)]
        single, low = (1000 * min(turn) / BATCH for turn in zip(*turns[1:], strict=True))
        rows.append(
            {"network": name, "size": size, "float32_ms": single, "auto_ms": low, "gain": single / low}
        )
        print(
            f"{name:<30} {single:8.2f} {low:8.2f} ms an image, {single / low:.2f} times as fast", flush=True
        )
        record(arguments.out, rows, threads=torch.get_num_threads(), bfloat16=cpu_has_bfloat16())


if __name__ == "__main__":
    main()
