"""What the figures that need no images cost, for a run of ImageNet-LT's size.

    python benchmarks/figures.py --out benchmarks/results/figures.json   # 50,000 test images, 1,000 classes
    python benchmarks/figures.py --small

Outputs are made up: features around a centre for each class, logits that are right for about half of the
images, open images between the classes. Draw: from outputs to the figure. Save: as it stands in the report
page, SVG or PNG. t-SNE takes its sample of at most 300 images.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from record import record

from oltr.config import RunConfig
from oltr.data.manifest import Manifest
from oltr.figures.figure import all_figures
from oltr.openset import RejectionRule, Score
from oltr.report.page.pictures import as_picture
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun

OF_IMAGES = ("method", "centroids", "attention", "infused", "activation")  # or of weights: none are made up


def made_up(images: int, classes: int, dims: int, seed: int, unseen: bool = False) -> Outputs:
    """Outputs of a split, classes in turn."""
    random = torch.Generator().manual_seed(seed)
    centres = torch.randn(classes, dims, generator=torch.Generator().manual_seed(0))
    near = torch.arange(images) % classes
    noise = torch.randn(images, dims, generator=random)
    features = (0.3 if unseen else 1.0) * centres[near] + 2 * noise
    logits = 6 * features @ centres.T / dims + torch.randn(images, classes, generator=random)
    labels = torch.full((images,), -1) if unseen else near
    distance = (features - centres[near]).norm(dim=1)
    return Outputs(logits, labels, features, embeddings=features / distance[:, None], reachability=distance)


class MadeUpRun(TrainedRun):
    """A run without a folder: its outputs, a long tail, and the names of its open images' classes."""

    def __init__(self, number: int, test: int, unseen: int, classes: int, dims: int):
        seed = 10 * number
        self.name, self.path = f"run {number}", Path(f"run {number}")
        self.config = RunConfig(method="plain" if number == 0 else "oltr")
        self.rule = RejectionRule("softmax", 0.1)
        self.counts = np.geomspace(1280, 5, classes).astype(np.int64)
        self.class_names = [f"class {place}" for place in range(classes)]
        self.made = {
            "test": made_up(test, classes, dims, seed),
            "open": made_up(unseen, classes, dims, seed + 1, unseen=True),
        }
        labels = [f"class {row % classes}" for row in range(test)]
        labels += [f"open {row % 360}" for row in range(unseen)]
        splits = ["test"] * test + ["open"] * unseen
        table = pd.DataFrame({"path": map(str, range(len(labels))), "label": labels, "split": splits})
        self.manifest = Manifest(table, Path(), tuple(self.class_names))
        self.other_data, self._fitted, self._scored = None, {}, {}

    def _read_by(self, score: Score | None) -> dict[str, Outputs]:
        return self.made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--small", action="store_true", help="2,000 test images, 100 classes")
    parser.add_argument("--runs", type=int, default=1, help="runs side by side")
    parser.add_argument("--out", type=Path, help="a JSON file")
    options = parser.parse_args()
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    test, unseen, classes, dims = (2_000, 800, 100, 64) if options.small else (50_000, 18_000, 1_000, 512)
    runs = [MadeUpRun(number, test, unseen, classes, dims) for number in range(options.runs)]
    facts = {"test_images": test, "open_images": unseen, "classes": classes, "runs": options.runs}
    rows: list[dict[str, Any]] = []
    for figure in all_figures():
        needs_two = figure.name == "class-gain" and options.runs < 2
        if figure.draw is None or figure.name in OF_IMAGES or needs_two:
            continue
        began = time.perf_counter()
        shown = figure.draw(figure.choose(runs))
        drawn = time.perf_counter()
        picture = as_picture(figure, shown)
        row = {
            "figure": figure.name,
            "draw_seconds": round(drawn - began, 2),
            "save_seconds": round(time.perf_counter() - drawn, 2),
            "kind": picture.kind,
            "kilobytes": round(picture.size / 1e3),
        }
        rows.append(row)
        print("  ".join(f"{value!s:>14}" for value in row.values()), flush=True)
        total = round(sum(row["draw_seconds"] + row["save_seconds"] for row in rows), 1)
        record(options.out, rows, torch.device("cpu"), **facts, total_seconds=total)
    print(f"{total:.1f} s in all, {sum(row['kilobytes'] for row in rows):,} kB")


if __name__ == "__main__":
    main()
