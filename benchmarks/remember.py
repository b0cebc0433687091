"""What the memory beside a trained classifier gains, by how many validation images choose its weight.

    python benchmarks/remember.py "CIFAR-100-LT, three experts=runs/e3" ... --out FILE.json

NAME=RUN: finished runs of `oltr2` with settings.class_means=none, and the data they were trained on. For each
the classifier alone; then the memory, its weight chosen by all validation images, by 10, 5, 2 or 1 of each
class (mean and deviation of ten draws), and by all with other corrections for rare classes. Accuracies are of
the test images, AUROC of the run's own score and of the largest logit. Rows of other names are kept.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from record import record
from torch import Tensor

from oltr.methods import remember as module
from oltr.methods.remember import RARE, remember
from oltr.metrics.accuracy import per_class_accuracy
from oltr.metrics.detection import auroc
from oltr.openset import SCORES
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun

PER_CLASS, DRAWS, OTHERS = (10, 5, 2, 1), 10, (0.0, 1.0, 10.0)
GROUPS = ("many", "medium", "few")
Pair = tuple[Tensor, Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = json.loads(asked.out.read_text())["rows"] if asked.out and asked.out.is_file() else []
    for name, folder in (words.rsplit("=", 1) for words in asked.runs):
        found = measured(TrainedRun(folder))
        rows = [row for row in rows if row["set"] != name] + [{"set": name, **row} for row in found]
        record(asked.out, rows, torch.device("cpu"), rare=RARE, draws=DRAWS)
        print(name)
        for row in found:
            print("  ", {key: value for key, value in row.items() if key != "deviation"})


def measured(run: TrainedRun) -> list[dict[str, Any]]:
    """A row for the classifier alone, and one for each way to choose the weight."""
    run.fitted(run.rule.score)  # its training outputs are kept
    sides = {split: run.outputs[split] for split in ("train", "val", "test", "open")}
    val = sides["val"].features.float(), sides["val"].labels
    rows = [{"validation": None, "weight": 0.0, **accuracy(run, sides, run.trained_network.head)}]
    rows.append(
        {"validation": "all", "per_class": float(val[1].bincount().double().mean()), **one(run, sides, val)}
    )
    for number in PER_CLASS:
        random = np.random.default_rng(number)
        drawn = [one(run, sides, some(val, number, random)) for _ in range(DRAWS)]
        mean = {key: statistics.fmean(row[key] for row in drawn) for key in drawn[0]}
        spread = {key: statistics.stdev(row[key] for row in drawn) for key in drawn[0]}
        rows.append({"validation": number, **mean, "deviation": spread})
    for rare in OTHERS:
        with patch.object(module, "RARE", rare):
            rows.append({"validation": "all", "rare": rare, **one(run, sides, val)})
    return rows


def one(run: TrainedRun, sides: dict[str, Outputs], val: Pair) -> dict[str, float]:
    network = copy.deepcopy(run.trained_network)
    train = sides["train"].features.float(), sides["train"].labels
    remember(network, train, val, len(run.counts))
    memory, weight = getattr(network.head, "added_memory", None), 0.0
    if memory is not None:
        cosines = float((memory.weights / (1 + module.RARE / torch.from_numpy(run.counts)).sqrt())[0])
        weight = cosines / float(memory.of_logits)
    return {"weight": round(weight, 3), **accuracy(run, sides, network.head)}


@torch.inference_mode()
def accuracy(run: TrainedRun, sides: dict[str, Outputs], head: torch.nn.Module) -> dict[str, float]:
    """By group, from the kept features; and AUROC."""
    logits = {split: head(side.features.float()).logits for split, side in sides.items()}
    labels = sides["test"].labels
    by_class = np.asarray(per_class_accuracy(logits["test"].argmax(dim=1), labels, len(run.counts)), float)
    found = {"overall": by_class.mean()}
    found |= {group: by_class[run.groups == group].mean() for group in GROUPS if (run.groups == group).any()}
    for name in (run.rule.score, "max-logit"):
        score = SCORES[name]().fit(sides["train"].features, logits["train"], sides["train"].labels)
        score.calibrate(sides["val"].features, logits["val"])
        known, unknown = (score(sides[split].features, logits[split]) for split in ("test", "open"))
        found[f"auroc, {name}"] = auroc(known, unknown)
    return {key: round(float(value), 4) for key, value in found.items()}


def some(val: Pair, per_class: int, random: np.random.Generator) -> Pair:
    order = torch.from_numpy(random.permutation(len(val[1])))
    kept = torch.cat([order[val[1][order] == k][:per_class] for k in val[1].unique()])
    return val[0][kept], val[1][kept]


if __name__ == "__main__":
    main()
