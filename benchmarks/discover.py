"""Unknown images named by few labels: clusters, questions, and the ranking against random choice.

    python benchmarks/discover.py RUN [RUN ...] --out benchmarks/results/discover.json

RUNs are frozen-feature runs of Flowers-102 made long-tailed, one for each split (benchmarks/photos.py makes
such). Three forms. `open`: 500 of the open images, as if the run had rejected all of them. `many`: 1,500 of
them, more than the known images that the cut can be tried on. `rejected`: what the run rejects of all open
and known test images, at most 500 of the open ones; a name is right if it is the true class, known or not.
A simulated person names the middle of each cluster, then single images (`naming.py`).
Cut and metric come from known images alone: validation images and all training outputs where the run keeps
them (results/discover.json), else its exemplars (results/discover-exemplars.json: the same runs without
outputs/train.safetensors). docs/open-world.md tells which settings were chosen on what.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from record import record

from oltr.openworld.cluster import choose_cut, medoids, ward_clusters
from oltr.openworld.known_places import known_features
from oltr.openworld.metric import Metric
from oltr.openworld.naming import Naming, name_by_asking
from oltr.openworld.rank import label_first
from oltr.runs.trained_run import TrainedRun

IMAGES, LABELS, DRAWS = {"open": 500, "many": 1500, "rejected": 500}, 50, 20
BUDGETS = (10, 20, 30, 40, 50)


def unknowns(run: TrainedRun, form: str, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Features, true class, novelty, uncertainty and whether it is open, of the images to be named."""
    parts: dict[str, list[np.ndarray]] = {}
    for split in ("open", "test") if form == "rejected" else ("open",):
        outputs, scored = run.outputs[split], run.scored(split)
        rows = np.arange(len(outputs))
        if form == "rejected":
            rows = np.flatnonzero(run.rule.rejects(scored.values).numpy())
        if split == "open":
            rows = random.permutation(rows)[: IMAGES[form]]
        best = outputs.probabilities().topk(2, dim=1).values.numpy()
        found = {
            "features": outputs.features.numpy(),
            "truth": run.manifest.rows(split)["label"].to_numpy(),
            "novelty": scored.unknown.numpy(),
            "unsure": 1 - best[:, 0] + best[:, 1],
            "open": np.full(len(outputs), split == "open"),
        }
        for name, values in found.items():
            parts.setdefault(name, []).append(values[rows])
    return {name: np.concatenate(values) for name, values in parts.items()}


def named_at_random(placed: np.ndarray, truth: np.ndarray, labels: int, random: np.random.Generator) -> float:
    """The share named rightly from answers about images chosen at random."""
    asked = random.permutation(len(truth))[:labels]
    naming = Naming(placed, np.full(len(truth), -1), {int(image): int(truth[image]) for image in asked})
    return float((naming.names() == truth).mean())


def measure(run: TrainedRun, split: int, form: str, seed: int) -> dict[str, Any]:
    """One row."""
    random = np.random.default_rng(seed)
    images, (taught, labels) = unknowns(run, form, random), known_features(run)
    names, truth = np.unique(images["truth"].astype(str), return_inverse=True)
    placed = Metric.fit(taught, labels)(images["features"])
    clusters = ward_clusters(placed, choose_cut(taught, labels, len(truth), run.config.seed))
    order = label_first(placed, clusters, images["novelty"], images["unsure"])
    middles = truth[medoids(placed, clusters)]
    rows = {}
    for budget in BUDGETS:
        named, _ = name_by_asking(placed, clusters, lambda image: int(truth[image]), budget)
        draws = [random.permutation(truth)[:budget] for _ in range(DRAWS)]
        rows[budget] = {
            "right": round(float((named == truth).mean()), 4),
            "right_open": round(float((named == truth)[images["open"]].mean()), 4),
            "right_random": round(
                float(np.mean([named_at_random(placed, truth, budget, random) for _ in range(3)])), 4
            ),
            "classes_found": len(np.unique(truth[order[:budget]])),
            "classes_found_random": round(float(np.mean([len(np.unique(draw)) for draw in draws])), 1),
        }
    return {
        "split": split,
        "form": form,
        "seed": seed,
        "images": len(truth),
        "open_images": int(images["open"].sum()),
        "classes": len(names),
        "clusters": int(clusters.max() + 1),
        "right_by_cluster_alone": round(float((middles[clusters] == truth).mean()), 4),
        "by_labels": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for split, path in enumerate(options.runs):
        run = TrainedRun(path)
        for form in IMAGES:
            for seed in range(options.seeds):
                rows.append(measure(run, split, form, seed))
                told = {key: value for key, value in rows[-1].items() if key != "by_labels"}
                print(told, rows[-1]["by_labels"][LABELS], flush=True)
                record(options.out, rows, labels=LABELS)


if __name__ == "__main__":
    main()
