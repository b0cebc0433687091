"""Every score on finished runs, and whether known classes that play unknown predict which is best.

    python benchmarks/scores.py RUN [RUN ...] --data Flowers-102 --out benchmarks/results/scores.json

`auroc` and `detection_error_min` are of test against open images. `played` is the AUROC of validation images
with a quarter of the classes as the unknown ones, the mean of four such quarters: a score is fitted without
their training images, and their logits are left out. The network has learned these classes all the same.
`training_units` is the AUROC of a sum whose parts are standardised by training images instead of validation
images. The first measurement of a run reads its training images once. Rows of other data are kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from record import record
from scipy.stats import spearmanr

from oltr.errors import UserError
from oltr.metrics.detection import auroc, detection_error_min
from oltr.openset import SCORES, Score
from oltr.runs.outputs import OPEN, Outputs
from oltr.runs.trained_run import TrainedRun

FOLDS = 4
NAMES = [name for name in SCORES if not SCORES[name]().view]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--data", required=True, help="what the runs were trained on, in words")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    kept = json.loads(asked.out.read_text())["rows"] if asked.out and asked.out.is_file() else []
    rows = [row for row in kept if row["data"] != asked.data]
    for path in asked.runs:
        run = TrainedRun(path)
        facts = {"data": asked.data, "run": path.name, "method": run.method, "backbone": run.config.backbone}
        found = measured(run)
        correlation = spearmanr([row["auroc"] for row in found], [row["played"] for row in found]).statistic
        rows += [facts | row for row in found] + [facts | {"rank_correlation": float(correlation)}]
        record(asked.out, rows, run.device)
        for row in [*sorted(found, key=lambda row: -row["auroc"]), {"rank_correlation": float(correlation)}]:
            print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()})


def measured(run: TrainedRun) -> list[dict[str, Any]]:
    """A row for each score that the run's outputs suffice for."""
    train, val = (run.own_outputs()[split] for split in ("train", "val"))
    test, unseen = run.outputs["test"], run.outputs["open"]
    classes = torch.randperm(val.logits.shape[1], generator=torch.Generator().manual_seed(0))
    rows = []
    for name in NAMES:
        try:
            score = fitted(name, train, val)
            sides = score(*test.inputs), score(*unseen.inputs)
        except UserError:  # reachability without a memory
            continue
        quarters = [played(name, train, val, set(classes[n::FOLDS].tolist())) for n in range(FOLDS)]
        row = {
            "score": name,
            "auroc": auroc(*sides),
            "detection_error_min": detection_error_min(*sides),
            "played": statistics.fmean(quarters),
        }
        if score.uses_validation:
            plain = fitted(name, train, None)
            row["training_units"] = auroc(plain(*test.inputs), plain(*unseen.inputs))
        rows.append(row)
    return rows


def fitted(name: str, train: Outputs, val: Outputs | None) -> Score:
    score = SCORES[name]().fit(train.features, train.logits, train.labels)
    return score if val is None else score.calibrate(val.features, val.logits)


def played(name: str, train: Outputs, val: Outputs, away: set[int]) -> float:
    """The AUROC of validation images, those of some classes being unknown ones."""
    columns = [k for k in range(val.logits.shape[1]) if k not in away]
    train, val = train.only(columns), val.only(columns)
    known, unknown = (val.subset((val.labels != OPEN).numpy() == side) for side in (True, False))
    score = fitted(name, train.subset((train.labels != OPEN).numpy()), known)
    return auroc(score(*known.inputs), score(*unknown.inputs))


if __name__ == "__main__":
    main()
