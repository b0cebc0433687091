"""What a memory of class means would add to the logits of a trained network.

    python benchmarks/memory_in_logits.py "three experts=runs/e3" ... --out FILE.json

NAME=RUN: finished runs of `oltr2`, and the data they were trained on. For each the logits z as trained, and

    a·z_k + b · √(1 + rare/n_k) · cos(A(v − m), A(μ_k − m)),   a, b ≥ 0,

v being the feature, μ_k the mean of the n_k training images of a class, m the mean of all, A the whitening
within classes; `weight` is b/a. The mean of few images is noisy, cosines with it are smaller by about that
root where rare = 3. a and b maximise the likelihood of the validation images, all classes counting alike.
Accuracies are of the test images, AUROC of the run's own score and of the largest logit. Rows of other names
are kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import record
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import functional as F

from oltr.methods.other_folds import every_class
from oltr.metrics.accuracy import group_means, per_class_accuracy
from oltr.metrics.detection import auroc
from oltr.openset import SCORES
from oltr.openset.whitened_cosine import cosines
from oltr.runs.trained_run import TrainedRun

RARE = (3.0, 0.0)
SPLITS = ("train", "val", "test", "open")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = json.loads(asked.out.read_text())["rows"] if asked.out and asked.out.is_file() else []
    for name, folder in (words.rsplit("=", 1) for words in asked.runs):
        found = measured(TrainedRun(folder))
        rows = [row for row in rows if row["set"] != name] + [{"set": name, **row} for row in found]
        record(asked.out, rows, torch.device("cpu"))
        print(name)
        for row in found:
            print("  ", row)


def measured(run: TrainedRun) -> list[dict[str, Any]]:
    """A row for the classifier alone, and one for each correction for rare classes."""
    run.fitted(run.rule.score)  # its training outputs are kept
    sides = {split: run.outputs[split] for split in SPLITS}
    logits = {split: side.logits.double() for split, side in sides.items()}
    memory = every_class(sides["train"].features.float(), sides["train"].labels, len(run.counts))
    near = {split: cosines(side.features.double(), memory) for split, side in sides.items()}
    rows: list[dict[str, Any]] = [{"rare": None, **results(run, logits)}]
    for rare in RARE:
        weights = (1 + rare / torch.from_numpy(run.counts).double()).sqrt()
        a, b = most_likely(logits["val"], near["val"] * weights, sides["val"].labels)
        both = {split: a * logits[split] + b * weights * near[split] for split in SPLITS}
        rows.append({"rare": rare, "weight": round(b / a, 3), **results(run, both)})
    return rows


def most_likely(z: Tensor, c: Tensor, labels: Tensor) -> tuple[float, float]:
    """a, b ≥ 0 at the least mean −log softmax(a·z + b·c)[y], all classes counting alike."""
    counts = labels.bincount()
    weights = 1.0 / counts[labels]

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        x = torch.tensor(at, requires_grad=True)
        found = weights @ F.cross_entropy(x[0] * z + x[1] * c, labels, reduction="none") / weights.sum()
        found.backward()
        return found.item(), x.grad.numpy()

    a, b = minimize(loss, np.array([1.0, 0.0]), method="L-BFGS-B", jac=True, bounds=[(0, None)] * 2).x
    return float(a), float(b)


def results(run: TrainedRun, logits: dict[str, Tensor]) -> dict[str, float]:
    """Accuracy by group, nothing rejected, and AUROC."""
    sides = {split: run.outputs[split] for split in SPLITS}
    by_class = per_class_accuracy(logits["test"].argmax(dim=1), sides["test"].labels, len(run.counts))
    found = group_means(by_class, run.groups)
    for name in (run.rule.score, "max-logit"):
        score = SCORES[name]().fit(sides["train"].features, logits["train"].float(), sides["train"].labels)
        score.calibrate(sides["val"].features, logits["val"].float())
        known, unknown = (score(sides[split].features, logits[split].float()) for split in ("test", "open"))
        found[f"auroc, {name}"] = auroc(known, unknown)
    return {key: round(float(value), 4) for key, value in found.items() if value is not None}


if __name__ == "__main__":
    main()
