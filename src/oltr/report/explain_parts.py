"""What the classes and the training images of a run have to say about one image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from oltr.config import RunConfig
from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.figures.explanation import Missing, Nearest, Strong, part
from oltr.figures.infused import infused
from oltr.figures.infused_concepts import Concepts
from oltr.figures.nearest_classes import NearestClasses, class_means, nearest_classes
from oltr.nn.heads import MetaEmbeddingHead, Output
from oltr.nn.network import Network
from oltr.report.training_sample import TrainingSample, training_sample
from oltr.runs.run_outputs import kept_outputs
from oltr.runs.views import all_pictures, chosen_images
from oltr.training.run_folder import RunFolder

_MEANS = {"train": "training", "val": "validation", "test": "test"}


class OpenRun(NamedTuple):
    """A run opened for explaining."""

    folder: RunFolder
    config: RunConfig
    network: Network
    names: list[str]
    counts: list[int]
    manifest: Manifest | Missing  # its training images
    console: Console


def nearest(run: OpenRun, direct: Tensor) -> Nearest:
    """The classes next to an image's direct feature (D), with a training image of each."""
    found = _nearest_centres(run, direct)
    examples = part(lambda: _examples(run, found.classes))
    return Nearest(found, [run.names[number] for number in found.classes], examples)


def _nearest_centres(run: OpenRun, direct: Tensor) -> NearestClasses:
    """By the memory's centroids; without a memory, by class means of outputs that were kept."""
    head = run.network.head
    if isinstance(head, MetaEmbeddingHead) and head.meta.memory is not None:
        memory = head.meta.memory
        centroids = memory.centroids.detach().float().cpu()
        return nearest_classes(direct, centroids, memory.known.cpu(), "centroids of the memory")
    for split, words in _MEANS.items():
        if kept := kept_outputs(run.folder, [split]):
            return nearest_classes(direct, *class_means(kept[split]), f"class means of the {words} images")
    raise UserError("There is no memory, and no outputs are kept of which class means could be taken.")


def _examples(run: OpenRun, classes: Sequence[int] | np.ndarray) -> np.ndarray:
    """The first training image of each class."""
    manifest = _training(run)
    labels = manifest.labels("train")
    firsts = np.array([np.flatnonzero(labels == number)[0] for number in classes])
    return all_pictures(chosen_images(run.config, manifest, "train", firsts, run.console), run.config)


def concepts(run: OpenRun, said: Output) -> tuple[Concepts | Missing, dict[int, list[Strong]]]:
    """What the memory infuses into an image, and the training images that show these neurons."""
    given = part(lambda: infused(said))
    if isinstance(given, Missing):
        return given, {}
    sample = part(lambda: training_sample(run.network, run.config, _training(run), run.console))
    if isinstance(sample, Missing):
        return Concepts(given, {}, whole=True, missing=sample.why), {}
    paths = _training(run).rows("train")["path"].tolist()
    strongest = {int(neuron): _strongest(sample, neuron, paths) for neuron in given.neurons[0]}
    return sample.concepts(given), strongest


def _strongest(sample: TrainingSample, neuron: int, paths: list[str]) -> list[Strong]:
    squares = sample.squares(neuron)
    side, peaks = squares.side, sample.found.peaks[neuron].tolist()
    rows = zip(squares.images.tolist(), squares.corners.tolist(), peaks, strict=True)
    return [
        Strong(paths[int(sample.numbers[number])], peak, (left, top, left + side, top + side))
        for number, (left, top), peak in rows
    ]


def _training(run: OpenRun) -> Manifest:
    if isinstance(run.manifest, Missing):
        raise UserError(run.manifest.why)
    return run.manifest
