"""OpenMax with a pooled tail, ours, beside the textbook form: who is called unknown above one half.

    python benchmarks/openmax.py RUN [RUN ...] --data Flowers-102 --out benchmarks/results/openmax.json

The first measurement of a run reads its training images once. Rows of other data in the file are kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from record import record

from oltr.metrics.detection import auroc
from oltr.runs.trained_run import TrainedRun

SCORES = ("openmax", "openmax-textbook")


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
        rows += [{"data": asked.data, "seed": run.config.seed, **measure(run, score)} for score in SCORES]
        record(asked.out, rows, run.device)
    for row in rows:
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})


def measure(run: TrainedRun, score: str) -> dict[str, Any]:
    """Shares of test and open images above one half; of classes with fewer than 20 training images, too."""
    test, unseen = run.scored("test", score), run.scored("open", score)
    counts = np.asarray(run.counts)[run.outputs["test"].labels.numpy()]
    rejected = (test.values > 0.5).double().numpy()
    return {
        "method": run.method,
        "score": score,
        "known": float(rejected.mean()),
        "known_few": float(rejected[counts < 20].mean()) if (counts < 20).any() else None,
        "open": float((unseen.values > 0.5).double().mean()),
        "auroc": auroc(test.unknown, unseen.unknown),
    }


if __name__ == "__main__":
    main()
