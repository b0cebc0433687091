"""How long a new class takes: five images given to a recogniser that is loaded.

    python benchmarks/add_class_time.py RUN IMAGE IMAGE ... --out benchmarks/results/add-class-time.json

The run is copied first. Median of rounds, each undone; the first, which warms up, does not count.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from record import record

from oltr import Recognizer

ROUNDS = 7


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("images", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(
            arguments.run, Path(folder) / "run", ignore=shutil.ignore_patterns("checkpoints")
        )
        recognizer = Recognizer.load(copy, verbose=False)
        recognizer.predict(arguments.images[:1])  # loaded
        seconds = []
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            recognizer.add_class("a new class", arguments.images)
            seconds.append(time.perf_counter() - began)
            recognizer.undo()
        config = recognizer.run_.config
        row = {
            "images": len(arguments.images),
            "seconds": round(statistics.median(seconds[1:]), 3),
            "slowest": round(max(seconds[1:]), 3),
            "what": f"{config.backbone} at {config.data.image_size} px on "
            f"{'a GPU' if recognizer.run_.device.type == 'cuda' else 'two CPU cores'}, "
            f"{len(recognizer.classes_)} classes",
        }
    print(row)
    record(arguments.out, [row], recognizer.run_.device)


if __name__ == "__main__":
    main()
