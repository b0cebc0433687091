"""Named images judged a few at a time: read, the network, rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from oltr.data.pack import Pack, open_pack
from oltr.runs.given_images import GivenImages
from oltr.runs.named_images import NamedImages
from oltr.runs.outputs import Outputs
from oltr.runs.own_data import check_pack
from oltr.runs.predict import NOT_FINITE, Asked, answers, outputs_of, rows_of
from oltr.runs.predictions.bursts import Bursts, mean_outputs, whole_bursts
from oltr.runs.read_ahead import Chunks, Decoded, Readable, chunks_of, read_ahead
from oltr.runs.temperature import is_finite

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

MOST = {"cpu": 32, "cuda": 256}  # images at a time; few where they take long: a stopped command repeats them
PIXELS = {"cpu": 2**23, "cuda": 2**25}  # of all images at a time
SHARE = 500  # of the GPU's free memory over the bytes of the images: a network takes about a hundredfold


@dataclass(frozen=True, eq=False)
class PackImages:
    """Some rows of a pack."""

    pack: Pack
    names: list[str]
    rows: np.ndarray
    piece: int = 32  # a row takes microseconds

    @property
    def size(self) -> int:
        """Side of the pack's pictures."""
        return self.pack.size

    def read(self, number: int) -> np.ndarray:
        """The picture."""
        return self.pack.images[self.rows[number]]


def images_at_a_time(run: TrainedRun) -> int:
    """As many as fit well into memory."""
    pixels, kind = run.config.data.stored_size**2, run.device.type
    fitting = PIXELS[kind] // pixels
    if kind == "cuda":
        fitting = min(fitting, torch.cuda.mem_get_info(run.device)[0] // (SHARE * 3 * pixels))
    return max(1, min(MOST[kind], fitting))


@contextmanager
def cores_for_decoding(device: torch.device) -> Iterator[None]:
    """Where a GPU computes, torch leaves the CPU to the decoder: for the little it does there, threads that
    wait for each other take longer than one."""
    before = torch.get_num_threads()
    if device.type == "cuda":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def readable(run: TrainedRun, images: NamedImages) -> Readable:
    """The images, to be read at the size that the run learned from."""
    data = run.config.data
    if images.pack is None or images.rows is None:
        return GivenImages([Path(path) for path in images.paths], data.frame)
    pack = open_pack(images.pack)
    check_pack(pack, data)
    return PackImages(pack, images.paths, images.rows)


def judged(
    run: TrainedRun,
    images: NamedImages,
    asked: Asked,
    bursts: Bursts | None = None,
    at_a_time: int | None = None,
    start: int = 0,
) -> Iterator[list[dict[str, Any]]]:
    """Rows of the images from `start` on, some whole bursts at a time; `images` in the order of the bursts.

    The parts, and so the batches, do not depend on where one starts: answers are the same to the last digit.
    """
    at_a_time = at_a_time or images_at_a_time(run)
    if bursts is None:
        parts = chunks_of(len(images), at_a_time, start)
    else:
        parts = whole_bursts(bursts, at_a_time, start)
    batches = [batch for part in parts for batch in _batches(part, at_a_time)]
    pixels = read_ahead(readable(run, images), batches, pin_memory=run.device.type == "cuda")
    stream = outputs_of(run, pixels)
    for first, end in parts:
        found: list[tuple[Decoded, list[Outputs]]] = []
        while sum(len(some.names) for some, _ in found) < end - first:  # a long burst has several batches
            found.append(next(stream))
        if bursts is None:
            yield [row for some, outputs in found for row in rows_of(run, some, outputs, asked)]
        else:
            yield _rows_of_bursts(run, found, asked, bursts, first)


def _batches(part: tuple[int, int], at_a_time: int) -> Chunks:
    return chunks_of(part[1], at_a_time, part[0])


def _rows_of_bursts(
    run: TrainedRun, found: list[tuple[Decoded, list[Outputs]]], asked: Asked, bursts: Bursts, first: int
) -> list[dict[str, Any]]:
    """Rows of whole bursts: each readable image has the answer to the mean of its burst's outputs."""
    names = [name for some, _ in found for name in some.names]
    problems = [problem for some, _ in found for problem in some.problems]
    views = [Outputs.joined(view) for view in zip(*(outputs for _, outputs in found if outputs), strict=True)]
    read = [i for i, problem in enumerate(problems) if not problem]
    if views:
        sound = is_finite(views[0]).numpy()
        for i in np.array(read)[~sound]:
            problems[i] = NOT_FINITE
        views, read = [view.subset(sound) for view in views], [i for i in read if not problems[i]]
    numbers = bursts.numbers[first : first + len(names)] - bursts.numbers[first]
    answered: list[dict[str, Any]] = []
    if read:
        groups, number = torch.from_numpy(numbers[read]), int(numbers[-1]) + 1
        means = [mean_outputs(view, groups, number) for view in views]
        answered = list(answers(run, means[0], means[-1], asked))
    return [
        {"path": name, **({"error": problem} if problem else answered[group]), "sequence": sequence}
        for name, problem, group, sequence in zip(
            names, problems, numbers, bursts.names[first : first + len(names)], strict=True
        )
    ]
