"""Long-tailed photos with unknown classes: `oltr train` as it stands beside baselines and every other method.

    python benchmarks/photos.py FLOWERS102 --out benchmarks/results/photos.json
    python benchmarks/photos.py FLOWERS102 --only "" --splits 0                # the default alone
    python benchmarks/photos.py FLOWERS102 --options="--train-backbone all"    # fine-tuned; a GPU

FLOWERS102 is a folder of class folders. Each split draws its own long-tailed training set, test set and
unknown classes. Nearest mean and balanced logistic regression are scikit-learn's, on the pooled features of
the same frozen weights at the same size, which costs them nothing.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import record
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

from oltr.data.features import Features
from oltr.data.sources import read_source
from oltr.metrics import auroc
from oltr.recipes import load_recipe
from oltr.suites.suite_file import load_suite
from oltr.training.configure import configure
from oltr.training.features import frozen_features

LONGTAIL = "--imbalance 18 --max 55 --min 3 --open 0.2"
CHANNELS = 1280  # of the last map of EfficientNet-Lite0


def command(*words: str) -> None:
    """One `oltr` command in a process of its own."""
    subprocess.run([sys.executable, "-m", "oltr.cli.main", *words], check=True, stdout=subprocess.DEVNULL)


def trained(source: Path, runs: Path, method: str, options: list[str]) -> dict[str, Any]:
    """The figures of `oltr train SOURCE`, as it stands or with another method, and the seconds it took."""
    out, began = runs / (method or "default"), time.monotonic()
    command("train", str(source), "--out", str(out), *(["--method", method] if method else []), *options)
    seconds, report = time.monotonic() - began, json.loads((out / "report.json").read_text())
    closed, unknown = report["closed"], report["open"]
    return {
        "method": report["method"],
        "overall": closed["overall"],
        "few": closed["few"],
        "auroc": unknown["auroc"],
        "unknown_recall": unknown["unknown_recall"],
        "f_measure": unknown["f_measure"],
        "seconds": round(seconds, 1),
    }


def baseline(name: str, source: Path, runs: Path) -> dict[str, Any]:
    """Nearest mean or balanced logistic regression on pooled features, rejecting 5 % of validation images."""
    manifest = read_source(str(source))
    config = configure("photos-frozen", "logit-adjusted")
    features = frozen_features(config, manifest, torch.device("cpu"), runs / "features")
    pooled, labels = {}, {}
    for split, images in features.items():
        assert isinstance(images, Features)
        root = images.values[:, :CHANNELS].numpy()
        pooled[split] = np.sign(root) * root**2  # descriptors hold the root
        pooled[split] /= np.linalg.norm(pooled[split], axis=1, keepdims=True)
        labels[split] = images.labels
    if name == "nearest mean":
        model: Any = NearestCentroid().fit(pooled["train"], labels["train"])

        def score(x: np.ndarray) -> np.ndarray:
            return -np.stack([((x - c) ** 2).sum(1) for c in model.centroids_], axis=1)
    else:
        model = LogisticRegression(C=100, class_weight="balanced", max_iter=2000)
        model.fit(pooled["train"], labels["train"])
        score = model.decision_function
    scores = {split: score(pooled[split]) for split in ("val", "test", "open")}
    right = scores["test"].argmax(1) == labels["test"]
    accuracy = np.array([right[labels["test"] == c].mean() for c in range(len(manifest.classes))])
    best = {split: values.max(1) for split, values in scores.items()}
    threshold = np.sort(best["val"])[int(0.05 * len(best["val"]))]
    return {
        "method": name,
        "overall": float(accuracy.mean()),
        "few": float(accuracy[manifest.train_counts() < 20].mean()),
        "auroc": auroc(torch.from_numpy(-best["test"]), torch.from_numpy(-best["open"])),
        "unknown_recall": float((best["open"] < threshold).mean()),
    }


def main() -> None:
    """Every split, every system."""
    parser = argparse.ArgumentParser(description="Long-tailed photos with unknown classes.")
    parser.add_argument("photos", type=Path, help="a folder of class folders")
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="*", help='methods; "" is the default')
    parser.add_argument("--options", default="", help="further options of `oltr train`")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    methods = arguments.only
    if methods is None:
        methods = list(dict.fromkeys(row.method for row in load_suite("photos").rows))
        methods = ["", *(method for method in methods if method != load_recipe("photos-frozen").method)]
    rows: list[dict[str, Any]] = []
    print(f"{'split':>5} {'method':<28} {'overall':>8} {'few':>6} {'AUROC':>6} {'unknown':>8} {'seconds':>8}")
    for split in arguments.splits:
        with tempfile.TemporaryDirectory() as folder:
            source, runs = Path(folder) / "photos", Path(folder) / "runs"
            words = [*LONGTAIL.split(), "--seed", str(split), "--out", str(source)]
            command("data", "longtail", str(arguments.photos), *words)
            for method in methods:
                rows.append(trained(source, runs, method, shlex.split(arguments.options)))
                tell(rows[-1], split, arguments)
                record(arguments.out, rows, longtail=LONGTAIL, options=arguments.options)
            for name in (
                () if arguments.only is not None else ("nearest mean", "balanced logistic regression")
            ):
                rows.append(baseline(name, source, runs))
                tell(rows[-1], split, arguments)
                record(arguments.out, rows, longtail=LONGTAIL, options=arguments.options)


def tell(row: dict[str, Any], split: int, arguments: argparse.Namespace) -> None:
    """Note the split and print the row."""
    row["split"] = split
    numbers = [100 * row[name] for name in ("overall", "few", "auroc", "unknown_recall")]
    seconds = f"{row['seconds']:8.1f}" if "seconds" in row else ""
    print(f"{split:>5} {row['method']:<28}" + "".join(f" {n:7.1f}" for n in numbers) + seconds, flush=True)


if __name__ == "__main__":
    main()
