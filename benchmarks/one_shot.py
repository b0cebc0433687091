"""People identified by one image each, by a network in an ONNX file and by pixels, over draws of that image.

    python benchmarks/one_shot.py PEOPLE --onnx NETWORK.onnx --out benchmarks/results/one-shot.json
    oltr identify --probes features.npz --gallery features.npz                    # after --write features.npz

PEOPLE/PERSON/IMAGE. The network takes 1×3×S×S floats, red first, from 0 to 255, and gives 1×D. Images are
stretched to S×S; no face is looked for and none is aligned. In each draw one image of each person is the
gallery, and all others are probes.
"""

from __future__ import annotations

import argparse
import statistics
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import record

from oltr.console import console
from oltr.data.sources import read_source
from oltr.identify.identify import identify
from oltr.identify.samples import GIVEN, Samples

RATES = ("rank1", "rank5")


def by_network(images: np.ndarray, path: Path) -> np.ndarray:
    """N×S×S×3 bytes → N×D."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # older files name their weights as inputs, which is told of each one
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    batches = images.transpose(0, 3, 1, 2).astype(np.float32)
    return np.concatenate([session.run(None, {name: image[None]})[0] for image in batches])


def by_pixels(images: np.ndarray) -> np.ndarray:
    """Grey values, less the mean of their image."""
    grey = images.mean(axis=3, dtype=np.float32).reshape(len(images), -1)
    return grey - grey.mean(axis=1, keepdims=True)


def drawn(labels: np.ndarray, seed: int) -> np.ndarray:
    """Whether an image is in the gallery: one of each person."""
    order = np.random.default_rng(seed).permutation(len(labels))
    _, first = np.unique(labels[order], return_index=True)
    return np.isin(np.arange(len(labels)), order[first])


def measure(features: np.ndarray, labels: np.ndarray, draws: int) -> dict[str, Any]:
    """Mean and deviation over the draws."""
    found: dict[str, list[float]] = {rate: [] for rate in RATES}
    for seed in range(draws):
        there = drawn(labels, seed)
        probes, gallery = (
            Samples(name, {GIVEN: torch.from_numpy(features[rows])}, labels[rows])
            for name, rows in (("probes", ~there), ("gallery", there))
        )
        rates = identify(probes, gallery).to_dict()
        for rate, values in found.items():
            values.append(rates[rate])
    return {
        "mean": {rate: statistics.mean(values) for rate, values in found.items()},
        "deviation": {rate: statistics.stdev(values) for rate, values in found.items()},
        "draws": found,
    }


def main() -> None:
    """Read, measure, print, write JSON."""
    parser = argparse.ArgumentParser(description="People identified by one image each.")
    parser.add_argument("source")
    parser.add_argument("--onnx", type=Path, required=True)
    parser.add_argument("--image-size", type=int, default=112)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--data", default="", help="what the images are, in words")
    parser.add_argument("--network", default="", help="what the network is, in words")
    parser.add_argument("--write", type=Path, help="leave the network's features here, as .npz")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    manifest = read_source(asked.source, flat="test")
    labels = manifest.table["label"].to_numpy(dtype=str)
    images = np.stack([manifest.read(path, asked.image_size) for path in manifest.table["path"]])
    network = by_network(images, asked.onnx)
    if asked.write is not None:
        np.savez(asked.write, features=network, labels=labels, paths=manifest.table["path"].to_numpy(str))
    rows = []
    for label, features in (("network", network), ("pixels", by_pixels(images))):
        with console.silent():
            found = measure(features, labels, asked.draws)
        rows.append({"label": label, "numbers": features.shape[1], **found})
        mean, deviation = (rows[-1][key]["rank1"] for key in ("mean", "deviation"))
        print(f"{label:>8}: rank 1 {100 * mean:.2f} ± {100 * deviation:.2f}")
    record(
        asked.out,
        rows,
        data=asked.data,
        network=asked.network,
        packages={"onnxruntime": metadata.version("onnxruntime")},
        people=len(set(labels)),
        probes=len(labels) - len(set(labels)),
        image_size=asked.image_size,
    )


if __name__ == "__main__":
    main()
