"""Images that are judged together: those of one sequence, or those that a camera took in a row."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch

from oltr.console import console
from oltr.data.photo_time import exif_time
from oltr.errors import UserError
from oltr.runs.named_images import NamedImages
from oltr.runs.outputs import Outputs
from oltr.runs.read_ahead import THREADS, Chunks
from oltr.wording import count


@dataclass(frozen=True, eq=False)
class Bursts:
    """N images in such an order that those of a burst are neighbours."""

    images: NamedImages
    numbers: np.ndarray  # N, of the burst of each image, rising
    names: list[str]  # N, by which a table tells them apart


def by_sequence(images: NamedImages, column: str) -> Bursts:
    """Bursts that a column names, in the order of their first images; an image without a name is alone."""
    names = images.column(column, "--sequence")
    first: dict[str, int] = {}
    keys = np.array([first.setdefault(name, i) if name else i for i, name in enumerate(names)])
    order = np.argsort(keys, kind="stable")
    numbers = np.unique(keys[order], return_inverse=True)[1]
    return Bursts(images.taken(order), numbers, [names[i] for i in order])


def by_time(images: NamedImages, seconds: float) -> Bursts:
    """Bursts of photos in one folder with at most so many seconds from one to the next, by their EXIF times.

    Images are in the order of folders, then of time; one without a time is alone. A burst is named by its
    first image.
    """
    if seconds < 0:
        raise UserError(f"--burst {seconds:g} is negative.", try_this="--burst 2")
    if images.pack is not None:
        raise UserError("--burst needs the times that photos carry; a pack has none.", try_this="--sequence")
    times = _times(images.paths)
    if missing := sum(time is None for time in times):
        console.say(f"{count(missing, 'image')} without a time in EXIF: each is judged alone")
    named = zip(images.paths, times, strict=True)
    places = [(str(Path(path).parent), time or 0.0, path) for path, time in named]
    order = np.array(sorted(range(len(places)), key=lambda i: places[i]), dtype=np.int64)
    numbers = np.zeros(len(order), dtype=np.int64)
    for at in range(1, len(order)):
        a, b = order[at - 1], order[at]
        before, now = times[a], times[b]
        near = before is not None and now is not None and now - before <= seconds
        numbers[at] = numbers[at - 1] + (not near or places[a][0] != places[b][0])
    starts = np.unique(numbers, return_index=True)[1]
    return Bursts(images.taken(order), numbers, [images.paths[order[starts[number]]] for number in numbers])


def _times(paths: Sequence[str]) -> list[float | None]:
    """Seconds, on the camera's own clock."""
    times: list[float | None] = []
    with ThreadPoolExecutor(THREADS) as threads, console.progress("reading times") as progress:
        for found in threads.map(exif_time, paths):
            times.append(None if found is None else found.moment.timestamp())
            progress(len(times), len(paths))
    return times


def whole_bursts(bursts: Bursts, at_a_time: int, start: int = 0) -> Chunks:
    """All images in parts of whole bursts, of at most `at_a_time` images unless one burst has more."""
    ends = [*(np.flatnonzero(np.diff(bursts.numbers)) + 1).tolist(), len(bursts.numbers)]
    parts: list[tuple[int, int]] = []
    begun = 0
    for burst_start, end in zip([0, *ends], ends, strict=False):
        if end - begun > at_a_time and burst_start > begun:
            parts.append((begun, burst_start))
            begun = burst_start
    parts.append((begun, len(bursts.numbers)))
    return [part for part in parts if part[0] >= start and part[0] < part[1]]


def mean_outputs(outputs: Outputs, groups: torch.Tensor, number: int) -> Outputs:
    """The mean of logits, features and the rest over the images of each group: N, N → `number` rows."""
    counts = torch.bincount(groups, minlength=number).clamp(min=1)
    means = {}
    for field in fields(outputs):
        values = getattr(outputs, field.name)
        if values is not None and field.name != "labels":
            total = torch.zeros(number, *values.shape[1:], dtype=torch.float64)
            total.index_add_(0, groups, values.double())
            means[field.name] = total / counts.view(-1, *[1] * (values.ndim - 1))
    return Outputs(labels=torch.full((number,), -1), **means)
