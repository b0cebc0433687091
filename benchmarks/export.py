"""An exported run against the run itself: answers on real images of many sizes, and time for one image.

    python benchmarks/export.py RUN [RUN ...] --out benchmarks/results/export.json

Images are the run's own (test, open, val in turn): each cut to a random shape and rescaled to a random size,
40 to 2,000 px a side; and as they are. Draft: the same saved as JPEG, large against the run's frame, read as
`oltr predict` does it (decoded at 1/2, 1/4 or 1/8) and whole; both answered by the run in float32. Times are
the quickest of some rounds, torch and onnxruntime in turn, each with one thread, resizing included.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from PIL import Image
from record import record

from oltr.console import console
from oltr.data.images import decode_image
from oltr.data.pixels import to_pixels, whole_picture
from oltr.export.check_images import CheckImages, own_images
from oltr.export.graph import Answering, in_float32
from oltr.export.parity import difference, in_onnx, in_torch, measure
from oltr.export.write import export_onnx
from oltr.runs.trained_run import TrainedRun

ROUNDS = 15
SHAPES = ((480, 640), (1536, 2048), (3000, 4000))


def varied(read: Callable[[], np.ndarray], seed: int) -> np.ndarray:
    """A part of a picture, of at least half of each side, at another size."""
    rng, picture = np.random.default_rng(seed), Image.fromarray(read())
    width, height = (max(int(side * rng.uniform(0.5, 1)), 1) for side in picture.size)
    left, top = (int(rng.integers(0, most + 1)) for most in (picture.width - width, picture.height - height))
    part = picture.crop((left, top, left + width, top + height))
    long = np.exp(rng.uniform(np.log(40), np.log(2000)))
    scale = long / max(part.size)
    size = tuple(max(round(side * scale), 8) for side in part.size)
    return np.array(part.resize(size, Image.Resampling.LANCZOS))


def drafted(run: TrainedRun, images: CheckImages) -> dict[str, Any]:
    """Answers from JPEGs decoded at a smaller scale, and whole."""
    frame, fast, whole = run.config.data.frame, [], []
    for number, picture in enumerate(images):
        side = int(frame.size * np.random.default_rng(number).uniform(4.1, 12))
        scale = side / min(picture.shape[:2])
        size = [round(each * scale) for each in picture.shape[1::-1]]
        file = io.BytesIO()
        Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS).save(file, "JPEG", quality=90)
        fast.append(decode_image(file.getvalue(), frame, "a.jpg")[0])
        whole.append(to_pixels(Image.fromarray(whole_picture(Image.open(file))), frame))
    gaps = np.abs(np.stack(fast).astype(int) - np.stack(whole))
    gap = difference(run, in_torch(run, np.stack(fast)), in_torch(run, np.stack(whole)))
    return {
        "images": gap.images,
        "mean_pixel_difference": round(float(gaps.mean()), 3),
        "largest_probability_difference": gap.probability,
        "same_labels": gap.same_labels,
        "same_decisions": gap.same_decisions,
    }


def times(run: TrainedRun, model: Path) -> list[dict[str, Any]]:
    """Milliseconds for one picture of each shape."""
    found = []
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    in_eager = torch.inference_mode()(Answering(run).eval())
    for height, width in SHAPES:
        rng = np.random.default_rng(0)
        small = Image.fromarray(rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8))
        picture = np.array(small.resize((width, height), Image.Resampling.BICUBIC))
        jobs = {
            "torch": partial(in_eager, torch.from_numpy(picture[None])),
            "onnx": partial(in_onnx, session, picture),
        }
        spent: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(ROUNDS):
            for name, job in jobs.items():
                began = time.perf_counter()
                job()
                spent[name].append(1000 * (time.perf_counter() - began))
        quickest = {f"{name}_ms": round(min(each), 1) for name, each in spent.items()}
        found.append({"picture": f"{width}×{height}", **quickest})
    torch.set_num_threads(threads)
    return found


def measured(path: Path, number: int) -> dict[str, Any]:
    run = TrainedRun(path)
    own = own_images(run, number)
    images = CheckImages(
        f"{len(own)} of its own images, cut and rescaled",
        [partial(varied, r, i) for i, r in enumerate(own.readers)],
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        made = export_onnx(run, Path(folder) / "model.onnx", images)
        seconds = time.perf_counter() - began
        session = onnxruntime.InferenceSession(made.path)
        exact = in_float32(run)
        one_picture = times(exact, made.path)
    with console.progress("comparing") as progress:
        as_they_are = measure(run, session, own, progress)
    few = CheckImages("", own.readers[:: max(len(own) // 300, 1)])
    return {
        "run": f"{run.method} on {run.config.backbone}, {run.config.data.image_size} px, "
        f"{len(run.class_names)} classes, {run.rule.score}",
        "megabytes": round(made.size / 1e6, 1),
        "export_and_check_seconds": round(seconds, 1),
        "parity": made.parity.to_dict(),
        "parity_of_images_as_they_are": as_they_are.to_dict(),
        "draft": drafted(exact, few),
        "one_picture": one_picture,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for path in options.runs:
        rows.append(measured(path, options.images))
        console.say(str(rows[-1]))
        packages = {name: metadata.version(name) for name in ("onnx", "onnxscript", "onnxruntime", "pillow")}
        record(options.out, rows, packages=packages)


if __name__ == "__main__":
    main()
