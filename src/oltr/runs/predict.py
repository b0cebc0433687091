"""What a trained network says of image files, row by row."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from oltr.config import RunConfig
from oltr.data.augment import Augment
from oltr.data.folders import find_images
from oltr.data.image_access import Images
from oltr.data.images import UnreadableImage, read_image
from oltr.errors import UserError
from oltr.nn.network import Network
from oltr.openset import Score
from oltr.runs.outputs import Outputs
from oltr.runs.prepare_score import view_change
from oltr.training.infer import ViewChange, collect_outputs

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


def image_paths(images: Iterable[str | Path] | str | Path) -> list[Path]:
    """Files as they were given, each folder as the images below it."""
    paths: list[Path] = []
    for image in [images] if isinstance(images, (str, Path)) else images:
        if not isinstance(image, (str, Path)):
            raise UserError(f"images holds a {type(image).__name__}.", try_this="paths of files or folders")
        path = Path(image).expanduser()
        below = [path / name for name in find_images(path)] if path.is_dir() else [path]
        if not below:
            raise UserError(f"There are no images in {path}.")
        paths += below
    return paths


def checked_name(path: Path) -> Path:
    """The path, refused where it could be neither printed nor written into a table."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"The name {str(path)!a} is not valid UTF-8.", try_this="rename it") from None
    return path


def predict(
    network: Network,
    config: RunConfig,
    classes: Sequence[str],
    paths: Sequence[Path],
    score: Score,
    threshold: float,
) -> pd.DataFrame:
    """The columns of predictions.csv; a file that cannot be read has its reason in `error` and no more."""

    def judge(pixels: list[np.ndarray]) -> Iterator[dict[str, Any]]:
        return _judge(network, config, classes, np.stack(pixels), score, threshold)

    paths = [checked_name(path) for path in paths]
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        for start in range(0, len(paths), AT_A_TIME):
            chunk = paths[start : start + AT_A_TIME]
            decoded = list(threads.map(lambda path: _read(path, config.data.stored_size), chunk))
            pixels = [result for result in decoded if isinstance(result, np.ndarray)]
            judged = judge(pixels) if pixels else iter(())
            for path, result in zip(chunk, decoded, strict=True):
                found = {"error": result} if isinstance(result, str) else {**next(judged), "error": ""}
                rows.append({"path": str(path), **found})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _read(path: Path, size: int) -> np.ndarray | str:
    """The picture, or why there is none."""
    try:
        return read_image(path, size)
    except UnreadableImage as problem:
        return problem.reason


def _judge(
    network: Network,
    config: RunConfig,
    classes: Sequence[str],
    pixels: np.ndarray,
    score: Score,
    threshold: float,
) -> Iterator[dict[str, Any]]:
    """Predictions for decoded images n×S×S×3, one by one."""
    count, device = len(pixels), next(network.parameters()).device
    images = Images(pixels.shape[1], np.full(count, -1), np.arange(count), torch.from_numpy(pixels))
    change = view_change(score, config.data)

    def said(change: ViewChange | None) -> Outputs:
        augment = Augment(config.data, device)
        return collect_outputs(network, images, augment, device, precision=config.precision, change=change)

    outputs = said(None)
    read = outputs if change is None else said(change)
    probabilities, labels = outputs.probabilities().topk(2, dim=1)
    unknown = score.is_unknown(score.value(read), threshold)
    unknown_score, reachability = score.unknown_score(read), outputs.reachability
    for i in range(count):
        yield {
            "label": classes[int(labels[i, 0])],
            "probability": float(probabilities[i, 0]),
            "unknown": bool(unknown[i]),
            "unknown_score": float(unknown_score[i]),
            "reachability": None if reachability is None else float(reachability[i]),
            "second_label": classes[int(labels[i, 1])],
            "second_probability": float(probabilities[i, 1]),
        }
