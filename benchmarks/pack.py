"""Random batches from a pack and from the image files it was made of, in the same run.

    python benchmarks/pack.py CIFAR_FOLDER --out benchmarks/results/pack.json [--images N]

All images below the folder (32 × 32 pixels, CIFAR-100 has 60,000) are packed, read back and compared pixel by
pixel with the files. Then one epoch of the same random batches of 128 is read from both in turn, by one
thread. Both lie in the page cache, so that decoding is measured and not the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from oltr.data.folders import find_images
from oltr.data.images import read_image
from oltr.data.manifest import Manifest
from oltr.data.pack import Pack, open_pack, write_pack

SIZE, BATCH, REPEATS = 32, 128, 5
NOTE = (
    "one epoch in random batches by one thread, files and pack both in the page cache; medians of the turns"
)


def all_images(folder: Path, most: int | None, rng: np.random.Generator) -> Manifest:
    """The images below a folder, or `most` of them by chance."""
    paths = np.array(find_images(folder))
    if most is not None:
        paths = paths[np.sort(rng.permutation(len(paths))[:most])]
    labels = [Path(path).parent.name for path in paths]
    return Manifest.build(pd.DataFrame({"path": paths, "label": labels, "split": "train"}), folder)


def differing(pack: Pack, files: list[Path]) -> int:
    """How many pictures in the pack are not what plain decoding of their files gives."""
    different = 0
    for image, file in zip(pack.images, files, strict=True):
        with Image.open(file) as original:
            different += not np.array_equal(image, np.asarray(original.convert("RGB")))
    return different


def rate(read: Callable[[np.ndarray], np.ndarray], batches: np.ndarray) -> float:
    """Images per second over all batches."""
    began = time.perf_counter()
    for rows in batches:
        pixels = read(rows)
    seconds = time.perf_counter() - began
    assert pixels.shape == (BATCH, SIZE, SIZE, 3) and pixels.dtype == np.uint8
    return batches.size / seconds


def main() -> None:
    """Pack, compare, measure, print a table and write the results."""
    from oltr.training.run_folder import hardware, versions

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, help="take so many of the images by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()

    load = os.getloadavg()[0]
    rng = np.random.default_rng(arguments.seed)
    manifest = all_images(arguments.folder, arguments.images, rng)
    files = manifest.paths("train")
    if len(files) < BATCH:
        parser.error(f"{len(files)} images are fewer than one batch of {BATCH}")
    batches = rng.permutation(len(files))[: len(files) // BATCH * BATCH].reshape(-1, BATCH)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        pack = open_pack(write_pack(manifest, SIZE, Path(folder) / "images.pack"))
        packing = time.perf_counter() - began
        different = differing(pack, files)  # this also brings both into the page cache
        readers: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "files": lambda rows: np.stack([read_image(files[row], SIZE) for row in rows]),
            "pack": lambda rows: pack.images[rows],
        }
        # In turn, so that whatever else the machine does falls on both.
        turns = [{name: rate(read, batches) for name, read in readers.items()} for _ in range(REPEATS)]
        length = pack.path.stat().st_size
    medians = {name: statistics.median(turn[name] for turn in turns) for name in readers}
    ratio = medians["pack"] / medians["files"]
    print(f"{len(files):,} images packed in {packing:.1f} s, {different} differ from their files")
    print(f"{len(batches)} batches of {BATCH}: {NOTE}; load before the start {load:.1f}")
    for name, value in medians.items():
        spread = " to ".join(f"{end([turn[name] for turn in turns]):,.0f}" for end in (min, max))
        print(f"{name:<8}{value:>12,.0f} images/s   ({spread})")
    print(f"{'ratio':<8}{ratio:>12.1f}")
    if arguments.out:
        results = {
            "benchmark": "pack.py",
            "date": time.strftime("%Y-%m-%d"),
            "hardware": hardware(),
            "cores": os.cpu_count(),
            "versions": versions() | {"pillow": metadata.version("pillow")},
            "load_before": round(load, 1),
            "note": NOTE,
            "seed": arguments.seed,
            "images": len(files),
            "size": SIZE,
            "batch": BATCH,
            "batches": len(batches),
            "repeats": REPEATS,
            "pack_seconds": round(packing, 1),
            "pack_bytes": length,
            "pictures_that_differ": different,
            "images_per_second": {name: round(value) for name, value in medians.items()},
            "turns": [{name: round(value) for name, value in turn.items()} for turn in turns],
            "ratio": round(ratio, 1),
        }
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
