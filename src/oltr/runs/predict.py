"""A run's answers for image files, row by row."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from oltr.data.image_access import Images
from oltr.data.images import UnreadableImage, read_image
from oltr.data.scan import find_images
from oltr.errors import UserError
from oltr.files import is_utf8
from oltr.runs.outputs import Outputs, scored_by
from oltr.runs.split_outputs import compute_outputs

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

COLUMNS = {
    "path": "object",
    "label": "object",
    "probability": "float64",
    "unknown": "boolean",  # pandas' own, which has room for "not known"
    "unknown_score": "float64",
    "reachability": "float64",
    "second_label": "object",
    "second_probability": "float64",
    "error": "object",
}
AT_A_TIME = 128  # images decoded and judged together: a million files cost no more memory than these


def predict(run: TrainedRun, images: Iterable[str | Path] | str | Path) -> pd.DataFrame:
    """The columns of predictions.csv; a file that cannot be read has its reason in `error` and no more."""
    paths = [checked_name(path) for path in image_paths(images)]
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        for start in range(0, len(paths), AT_A_TIME):
            chunk = paths[start : start + AT_A_TIME]
            decoded = list(threads.map(lambda path: _read(path, run.config.data.stored_size), chunk))
            pixels = [result for result in decoded if isinstance(result, np.ndarray)]
            answers = answer(run, np.stack(pixels)) if pixels else iter(())
            for path, result in zip(chunk, decoded, strict=True):
                found = {"error": result} if isinstance(result, str) else {**next(answers), "error": ""}
                rows.append({"path": str(path), **found})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def answer(run: TrainedRun, pixels: np.ndarray) -> Iterator[dict[str, Any]]:
    """The answer for each of n decoded images n×S×S×3."""
    images, score = as_images(pixels), run.fitted(run.rule.score)
    outputs = compute_outputs(run, images)
    read = compute_outputs(run, images, score) if score.view else outputs
    return answers(run, outputs, read)


def answers(run: TrainedRun, outputs: Outputs, read: Outputs) -> Iterator[dict[str, Any]]:
    """The answers that follow from outputs, and from those of the view that the run's score reads."""
    probabilities, labels = outputs.probabilities().topk(2, dim=1)
    scored = scored_by(run.fitted(run.rule.score), read)
    unknown, reachability = run.rule.rejects(scored.values), outputs.reachability
    for i in range(len(outputs)):
        yield {
            "label": run.class_names[int(labels[i, 0])],
            "probability": float(probabilities[i, 0]),
            "unknown": bool(unknown[i]),
            "unknown_score": float(scored.unknown[i]),
            "reachability": None if reachability is None else float(reachability[i]),
            "second_label": run.class_names[int(labels[i, 1])],
            "second_probability": float(probabilities[i, 1]),
        }


def as_images(pixels: np.ndarray) -> Images:
    """Decoded images n×S×S×3 of no known label, open for reading."""
    number = len(pixels)
    return Images(pixels.shape[1], np.full(number, -1), np.arange(number), torch.from_numpy(pixels))


def image_paths(images: Iterable[str | Path] | str | Path) -> list[Path]:
    """Files as they were given, each folder as the images below it."""
    paths: list[Path] = []
    for image in [images] if isinstance(images, (str, Path)) else images:
        if not isinstance(image, (str, Path)):
            raise UserError(f"images holds a {type(image).__name__}.", try_this="paths of files or folders")
        if isinstance(image, str) and not image.strip():
            raise UserError("An image has an empty path.", try_this="paths of files or folders")
        path = Path(image).expanduser()
        below = [path / name for name in find_images(path)] if path.is_dir() else [path]
        if not below:
            raise UserError(f"There are no images in {path}.")
        paths += below
    return paths


def checked_name(path: Path) -> Path:
    """The path, refused where it could be neither printed nor written into a table."""
    if not is_utf8(path):
        raise UserError(f"The name {str(path)!a} is not valid UTF-8.", try_this="rename it")
    return path


def _read(path: Path, size: int) -> np.ndarray | str:
    """The picture, or why there is none."""
    try:
        return read_image(path, size)
    except UnreadableImage as problem:
        return problem.reason
