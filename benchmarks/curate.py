"""`oltr data curate imagenet-lt` from an index of made-up paths: time and memory at ImageNet's size.

python benchmarks/curate.py --out benchmarks/results/curate.json [--images 1281167] [--classes 1000]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib import metadata
from pathlib import Path

IMAGES, CLASSES = 1_281_167, 1000  # ILSVRC2012's training set


def write_index(file: Path, images: int, classes: int) -> None:
    """Paths of a tree whose classes are as equal in size as can be."""
    with file.open("w") as lines:
        for number in range(images):
            wnid = f"n{number % classes:08d}"
            lines.write(f"train/{wnid}/{wnid}_{number // classes}.JPEG\n")


def main() -> None:
    """Curate in a process of its own, print what it took, and write it down."""
    parser = argparse.ArgumentParser(description="Time and memory of curating ImageNet-LT from an index.")
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--classes", type=int, default=CLASSES)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index.txt"
        write_index(index, arguments.images, arguments.classes)
        verb = ["data", "curate", "imagenet-lt", "--index", str(index), "--out", f"{folder}/out", "--json"]
        began = time.perf_counter()
        command = [sys.executable, "-m", "oltr.cli.main", *verb]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # kibibytes on Linux
    result = {
        "date": date.today().isoformat(),
        "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_before": round(os.getloadavg()[0], 1),
        "versions": {"python": platform.python_version(), "pandas": metadata.version("pandas")},
        "paths": arguments.images,
        "classes": arguments.classes,
        "seconds": round(seconds, 1),
        "peak_mebibytes": round(peak),
        "train_images": json.loads(said.stdout)["images"]["train"],
    }
    print(f"{arguments.images:,} paths: {seconds:.1f} s, {peak:,.0f} MiB, {result['train_images']:,} chosen")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
