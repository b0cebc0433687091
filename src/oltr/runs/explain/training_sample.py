"""A run's training images, or a random part of them, and to which of them each neuron answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from oltr.console import console
from oltr.data.image_access import Images
from oltr.runs.explain.activations import Activations, activations
from oltr.runs.explain.infused import Boxes, Concepts, Infused, boxes, cut
from oltr.runs.pictures import chosen_images, pictures_of, subset, views_of
from oltr.runs.trained_run import TrainedRun
from oltr.samplers import generator
from oltr.training.precision import autocast

AT_MOST = 5000  # images: the strongest of so many show a concept, and a CPU has seen them in seconds
PATCHES, AVERAGED = 9, 50  # a sheet of 3×3; means of 50 images, or a tenth of what there is


@dataclass(frozen=True, eq=False)
class ActivationAverages:
    """Mean images of T neurons, T×s×s×3 float64 in 0..255."""

    neurons: np.ndarray  # T int64, entries of v_direct
    least: np.ndarray
    most: np.ndarray
    images: int  # that each mean is taken of
    looked_at: str  # among which images they were found
    aligned: float  # the share of edges that images have in the same place, median; 0: unrelated images


@dataclass(frozen=True, eq=False)
class TrainingSample:
    """Training images in random order, and what the neurons make of them."""

    run: TrainedRun
    rows: np.ndarray  # n int64, of the images in the train split
    images: Images
    found: Activations
    of: int  # training images in all

    @property
    def described(self) -> str:
        """Which images these are, in words."""
        if len(self.rows) == self.of:
            return f"all {self.of:,} training images"
        return f"{len(self.rows):,} of {self.of:,} training images, drawn with seed {self.run.config.seed}"

    def squares(self, neuron: int) -> Boxes:
        """Where the neuron is strongest."""
        return boxes(self.found, neuron, self.run.config.data.seen_size)

    def concepts(self, given: Infused) -> Concepts:
        """The patches that stand for the neurons infused."""
        patches = {}
        for neuron in sorted(set(given.neurons.flat)):
            squares = self.squares(neuron)
            patches[int(neuron)] = cut(self.pictures(squares.images), squares)
        return Concepts(given, patches, self.found.peak_cells is None, self.described)

    def averages(self, neurons: Iterable[int]) -> ActivationAverages:
        """The mean images of those neurons."""
        chosen = np.array(list(neurons), dtype=np.int64)
        means: list[np.ndarray] = []
        aligned: list[float] = []
        for rows in (self.found.least, self.found.most):
            for neuron in chosen:
                pictures = self.pictures(rows[neuron].numpy()).astype(np.float64)
                means.append(pictures.mean(axis=0))
                aligned.append(_aligned(pictures))
        least, most = np.stack(means[: len(chosen)]), np.stack(means[len(chosen) :])
        images = self.found.most.shape[1]
        return ActivationAverages(chosen, least, most, images, self.described, float(np.median(aligned)))

    def pictures(self, images: np.ndarray) -> np.ndarray:
        """Some of the images: n×s×s×3 uint8."""
        return pictures_of(self.run, subset(self.images, images))


def _aligned(pictures: np.ndarray) -> float:
    """a in E² (mean of n) = (a + (1 − a)/n) · E² (of its images), E their edges: whatever n is."""
    kept = float(_edges(pictures.mean(axis=0)) / max(_edges(pictures).mean(), 1e-9))
    return (len(pictures) * kept**2 - 1) / max(len(pictures) - 1, 1)


def _edges(pictures: np.ndarray) -> np.ndarray:
    """Root mean square of the differences between neighbouring pixels, …×s×s×3 → …"""
    across, down = (np.diff(pictures, axis=axis) for axis in (-2, -3))
    return np.sqrt(np.square(across).mean(axis=(-3, -2, -1)) + np.square(down).mean(axis=(-3, -2, -1)))


def training_sample(run: TrainedRun, at_most: int = AT_MOST) -> TrainingSample:
    """One pass over the training images, or over `at_most` of them, drawn by the run's seed."""
    total = run.manifest.sizes()["train"]
    # Shuffled in any case: among images that a neuron cannot tell apart none is to come first by its class.
    rows = generator(run.config.seed, total).permutation(total)[:at_most]
    images = chosen_images(run, "train", rows)
    averaged = min(AVERAGED, max(1, len(rows) // 10))
    with (
        console.progress("looking at training images") as progress,
        autocast(run.device, run.config.precision),
    ):
        found = activations(run.network, views_of(run, images, progress), PATCHES, averaged)
    return TrainingSample(run, rows, images, found, total)
