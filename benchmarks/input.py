"""How many images a second each stage of the input gives: files, packs, and the views made of them.

    python benchmarks/input.py --out benchmarks/results/input.json [--images N]    # the GPU if there is one
    python benchmarks/input.py --cpu

Made-up JPEG files of 500 × 375 pixels are read by different numbers of worker processes (their start
counted, as each epoch pays it), packed at ImageNet-LT's 256 pixels, and read from the pack; beside it a
pack of CIFAR's size. All of it lies in the page cache, so that no disk is measured. Views are made on the
device, one batch after another, as the recipe says (ImageNet-LT: crop resized to 224, flip, jitter; CIFAR:
padded crop, flip). Batches are of 128; rates are medians of the rounds; "said" is what `oltr train` would
measure at its start.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from record import record

from oltr.config import DataConfig, StageConfig
from oltr.data.augment import Augment, draw_views
from oltr.data.batches import TrainBatches
from oltr.data.image_access import Images
from oltr.data.manifest import Manifest
from oltr.data.pack import open_pack, write_pack, write_pack_from
from oltr.training.configure import configure
from oltr.training.input_rate import input_rate

BATCH, ROUNDS = 128, 3
DIFFERENT = 64  # pictures; the files repeat them
WORKERS = (0, 2, 4, 8, 16)
LONG_ENOUGH = 0.5  # seconds of one round of augmentation or of reading a pack


def picture(rng: np.random.Generator) -> bytes:
    """A JPEG file of 500 × 375 with large shapes and some grain, of about the size that photographs have."""
    shapes = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375))
    grain = rng.normal(0, 12, (375, 500, 1))
    file = io.BytesIO()
    Image.fromarray((np.asarray(shapes) + grain).clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def write_files(folder: Path, number: int, rng: np.random.Generator) -> Manifest:
    """So many files of ten classes."""
    contents = [picture(rng) for _ in range(DIFFERENT)]
    names = [f"{i}.jpg" for i in range(number)]
    for i, name in enumerate(names):
        (folder / name).write_bytes(contents[i % DIFFERENT])
    table = pd.DataFrame({"path": names, "label": [str(i % 10) for i in range(number)], "split": "train"})
    return Manifest.build(table, folder)


def mapped(pack: Path) -> Images:
    """The images of a pack where they lie on disk."""
    opened = open_pack(pack)
    manifest, pixels = opened.manifest, torch.from_numpy(np.asarray(opened.images))
    return Images(opened.size, manifest.labels("train"), manifest.positions("train"), pixels)


def resident(images: Images, device: torch.device) -> Images:
    """The same in memory, that of the GPU if there is one."""
    assert images.pixels is not None
    return Images(images.size, images.labels, images.rows, images.pixels.to(device, copy=True))


def random_batches(images: Images, batches: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(len(images), size=(batches, BATCH))


def rate(work: Callable[[int], Any], batches: int, device: torch.device) -> float:
    """Images per second of `work(batches)`."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    work(batches)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return batches * BATCH / (time.perf_counter() - began)


def steady(work: Callable[[int], Any], device: torch.device) -> list[float]:
    """The rates of rounds that are long enough, after a first one that is not counted."""
    work(1)
    batches = max(round(LONG_ENOUGH * rate(work, 4, device) / BATCH), 1)
    return [rate(work, batches, device) for _ in range(ROUNDS)]


def files_rows(manifest: Manifest, data: DataConfig, device: torch.device) -> Iterator[dict[str, Any]]:
    """Files decoded by worker processes, each of which has as much to do however many there are."""
    images = Images(data.stored_size, manifest.labels("train"), files=manifest.paths("train"))
    augment, rng = Augment(data, device), np.random.default_rng(0)
    workers = [number for number in WORKERS if number <= (os.cpu_count() or 1)]
    share = max(len(images) // BATCH // max(workers[-1], 1), 1)

    def read(batches: int) -> None:
        for _ in images.batches(random_batches(images, batches, rng), device, number):
            pass

    for number in workers:
        batches = share * max(number, 1)
        rates = [rate(read, batches, device) for _ in range(ROUNDS)]
        yield {
            "stage": f"files of 500×375, {number} workers",
            "rates": rates,
            "said": input_rate(images, augment, BATCH, device, number).read,
        }


def stored_rows(name: str, pack: Path, data: DataConfig, device: torch.device) -> Iterator[dict[str, Any]]:
    """A pack, read from the file and from memory, and the views that are made of its images."""
    augment, rng = Augment(data, device), np.random.default_rng(0)
    memory = "the GPU" if device.type == "cuda" else "memory"
    on_disk = mapped(pack)
    in_memory = resident(on_disk, device)
    for where, images in (("memory-mapped", on_disk), (f"in {memory}", in_memory)):

        def read(batches: int, images: Images = images) -> None:
            for _ in images.batches(random_batches(images, batches, rng), device, 0):
                pass

        said = input_rate(images, augment, BATCH, device, 0)
        yield {"stage": f"{name} pack {where}", "rates": steady(read, device), "said": said.read}

    def feed(batches: int) -> None:
        whole = TrainBatches(in_memory, StageConfig(batch_size=BATCH), (0, 1, 0), device, 0)
        while batches > 0:
            for _, _ in zip(range(batches), whole, strict=False):
                batches -= 1

    yield {"stage": f"{name} with order, draws, labels", "rates": steady(feed, device)}
    (pixels,) = in_memory.batches(random_batches(in_memory, 1, rng), device, 0)
    draws = draw_views(rng, BATCH).to(device)
    makers = {"augmented": augment.train}
    if device.type == "cuda":
        makers["augmented, compiled"] = torch.compile(augment.train)
    for how, maker in makers.items():

        def views(batches: int, maker: Callable[..., Any] = maker) -> None:
            for _ in range(batches):
                maker(pixels, draws)

        row = {"stage": f"{name} {how}", "rates": steady(views, device)}
        yield row | ({"said": said.augmented} if how == "augmented" else {})


def all_rows(folder: Path, number: int, device: torch.device) -> Iterator[dict[str, Any]]:
    """Every stage, one after another."""
    rng = np.random.default_rng(0)
    large, small = (configure(name, "plain").data for name in ("imagenet-lt", "cifar100-lt-100"))
    (folder / "files").mkdir()
    manifest = write_files(folder / "files", number, rng)
    yield from files_rows(manifest, large, device)
    began = time.perf_counter()
    pack = write_pack(manifest, large.stored_size, folder / "large.pack")
    yield {"stage": "files packed, by threads", "rates": [number / (time.perf_counter() - began)]}
    yield from stored_rows("256 px", pack, large, device)
    noise = rng.integers(0, 256, (number, 32, 32, 3), dtype=np.uint8)
    yield from stored_rows(
        "32 px", write_pack_from(manifest, noise, 32, folder / "small.pack"), small, device
    )


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description="Images per second of each stage of the input.")
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    parser.add_argument("--images", type=int, help="how many files are written")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = torch.device("cpu" if arguments.cpu or not torch.cuda.is_available() else "cuda:0")
    number = arguments.images or (512 if device.type == "cpu" else 4_096)
    print(f"{'stage':<36}{'images/s':>12}{'lowest':>12}{'highest':>12}{'said':>12}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in all_rows(Path(folder), number, device):
            rates = [round(value) for value in row["rates"]]
            said = round(row["said"]) if "said" in row else None
            rows.append(
                {
                    "stage": row["stage"],
                    "images_per_second": round(statistics.median(rates)),
                    "rounds": rates,
                    "said": said,
                }
            )
            numbers = (rows[-1]["images_per_second"], min(rates), max(rates))
            shown = "".join(f"{value:>12,}" for value in numbers)
            print(f"{row['stage']:<36}{shown}{'–' if said is None else f'{said:,}':>12}", flush=True)
            packages = {"pillow": metadata.version("pillow")}
            record(arguments.out, rows, device, packages=packages, images=number, batch=BATCH)


if __name__ == "__main__":
    main()
