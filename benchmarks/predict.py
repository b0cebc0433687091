"""What `oltr predict` costs beside its two workers alone: the decoder and the network.

    python benchmarks/predict.py --out benchmarks/results/predict.json         # one GPU: resnet50 at 224 px
    python benchmarks/predict.py --small --out benchmarks/results/predict-cpu.json   # any CPU

Decoder: the files read by the same threads, nothing done with them. Forward: the network on one batch that
lies ready on the device, as often as the images fill it. Predict: all of the command, from the names to the
finished predictions.csv. Times are medians of the rounds, the three in turn. `ratio` is predict's rate over
that of the slower worker; on a CPU both share the cores, and `shared_ratio` is over the rate at which the two
could do their work one after the other. From a pack there is nothing to decode.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from record import record

from oltr.data.augment import Augment
from oltr.data.pack import write_pack
from oltr.data.sources import read_source
from oltr.runs.named_images import NamedImages, named_images
from oltr.runs.predictions.judge import images_at_a_time, readable
from oltr.runs.predictions.predict_to import Wish, predict_to
from oltr.runs.read_ahead import chunks_of, read_ahead
from oltr.runs.train_run import train_run
from oltr.runs.trained_run import TrainedRun
from oltr.training.configure import configure
from oltr.training.options import TrainOptions
from oltr.training.precision import autocast

ROUNDS, CLASSES = 3, 8


def make_photos(folder: Path, number: int, distinct: int, width: int, height: int) -> Path:
    """JPEGs like photos, soft shapes with some noise, in class folders; links stand for repeated ones."""
    rng = np.random.default_rng(0)
    kept: list[Path] = []
    for i in range(number):
        file = folder / f"class{i % CLASSES}" / f"{i:06}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        if i < distinct:
            small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
            soft = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
            noisy = soft + rng.integers(-12, 13, soft.shape, dtype=np.int16)
            Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, quality=90)
            kept.append(file)
        else:
            file.hardlink_to(kept[i % distinct])
    return folder


def make_run(folder: Path, photos: Path, backbone: str, size: int) -> TrainedRun:
    """A run of plain with one epoch on some of the photos."""
    options: dict[str, Any] = {"epochs": (1,), "changes": ["stage1.batch_size=16"]}
    config = configure("imagenet-lt", "plain", backbone=backbone, image_size=size, **options)
    manifest = read_source(photos)
    few = manifest.table.groupby("split").head(32).reset_index(drop=True)
    train_run(config, replace(manifest, table=few), folder, TrainOptions(), str(photos))
    return TrainedRun(folder)


class Measured:
    """The workers alone and the whole, on the same images."""

    def __init__(self, run: TrainedRun, images: NamedImages, folder: Path):
        self.run, self.images, self.out = run, images, folder / "predictions.csv"
        self.batch = images_at_a_time(run)

    def decoder(self) -> None:
        for _ in read_ahead(readable(self.run, self.images), chunks_of(len(self.images), self.batch)):
            pass

    @torch.inference_mode()
    def forward(self) -> None:
        run, data = self.run, self.run.config.data
        pixels = torch.randint(0, 256, (self.batch, 3, data.image_size, data.image_size), dtype=torch.uint8)
        views = Augment(data, run.device).evaluate(pixels.to(run.device))
        for start in range(0, len(self.images), self.batch):
            with autocast(run.device, run.config.precision):
                run.network(views[: len(self.images) - start])

    def predict(self) -> None:
        predict_to(self.run, self.images, self.out, Wish(overwrite=True))


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """How long one pass takes."""
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def measure(run: TrainedRun, images: NamedImages, folder: Path, **facts: Any) -> dict[str, Any]:
    """The workers in turn, once to warm up and then some rounds."""
    measured, number = Measured(run, images, folder), len(images)
    works = {"forward": measured.forward, "predict": measured.predict}
    if images.pack is None:
        works = {"decoder": measured.decoder} | works
    rounds = [{key: seconds(work, run.device) for key, work in works.items()} for _ in range(ROUNDS + 1)][1:]
    rates = {key: number / statistics.median(turn[key] for turn in rounds) for key in works}
    slower = min((key for key in rates if key != "predict"), key=lambda key: rates[key])
    one_after_the_other = 1 / sum(1 / rate for key, rate in rates.items() if key != "predict")
    row = facts | {"images": number, "batch": measured.batch, "image_size": run.config.data.image_size}
    row |= {f"{key}_images_per_second": round(rate, 1) for key, rate in rates.items()}
    row |= {"slower": slower, "ratio": round(rates["predict"] / rates[slower], 3)}
    if run.device.type == "cpu":
        row["shared_ratio"] = round(rates["predict"] / one_after_the_other, 3)
    row["rounds"] = [{key: round(value, 3) for key, value in turn.items()} for turn in rounds]
    return row


def main() -> None:
    """Measure, print a line for each row, write JSON."""
    parser = argparse.ArgumentParser(description="oltr predict beside the decoder and the network alone.")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    small = arguments.small or not torch.cuda.is_available()
    backbone, size, number, repeats = ("resnet18", 128, 256, 1) if small else ("resnet50", 224, 3072, 8)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photos = make_photos(folder / "photos", number, min(number, 1024), 1024, 768)
        run = make_run(folder / "run", photos, backbone, size)
        pack = write_pack(read_source(photos), run.config.data.stored_size, folder / "photos.pack")
        packed = named_images([pack])
        many = packed.taken(np.tile(np.arange(number), repeats))
        for source, images in (("files, 1024×768 JPEG", named_images([photos])), ("pack", many)):
            rows.append(measure(run, images, folder, source=source, backbone=backbone))
            print({key: value for key, value in rows[-1].items() if key != "rounds"}, flush=True)
            record(arguments.out, rows, run.device)


if __name__ == "__main__":
    main()
