"""What a quarter of the labels is worth: `oltr loop` on finished runs, three seeds each.

    python benchmarks/loop.py RUN [RUN ...] --out benchmarks/results/loop.json

RUNs are frozen-feature runs of Flowers-102 made long-tailed, one for each split (benchmarks/photos.py makes
such): test and open images arrive in eight weeks, 30 % of every class held out, a fifth of the new classes
never comes. Every setting of the strategy was chosen on known classes that played new ones.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from record import record

from oltr.openworld.experiment import Experiment, experiment
from oltr.openworld.experiment_files import table
from oltr.runs.trained_run import TrainedRun

MEASURES = ("accuracy", "accuracy_images", "accuracy_new", "unknown_recall", "known_rejected")


def rows(split: int, found: Experiment, seconds: float) -> list[dict[str, object]]:
    """A row for each strategy: means over seeds after the last week, and the curve."""
    made = []
    for name, seeds in found.results.items():
        curve = np.array([[week.accuracy for week in one] for one in seeds])
        made.append(
            {
                "split": split,
                "strategy": name,
                "seeds": len(seeds),
                "arrived": [one[-1].arrived for one in seeds],
                "labels": [one[-1].labels for one in seeds],
                **{measure: round(float(np.nanmean(found.last(name, measure))), 4) for measure in MEASURES},
                "accuracy_by_seed": [round(float(value), 4) for value in curve[:, -1]],
                "labels_by_week": [
                    round(np.mean([one[w].labels for one in seeds])) for w in range(found.weeks)
                ],
                "accuracy_by_week": [round(float(value), 4) for value in curve.mean(axis=0)],
                "seconds_all_strategies": round(seconds, 1),
            }
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    done: list[dict[str, object]] = []
    for split, path in enumerate(options.runs):
        began = time.monotonic()
        found = experiment(TrainedRun(path), seeds=options.seeds)
        done += rows(split, found, time.monotonic() - began)
        print(f"split {split}\n{table(found)}\n", flush=True)
        record(options.out, done, weeks=found.weeks, labels_a_week=found.labels)


if __name__ == "__main__":
    main()
