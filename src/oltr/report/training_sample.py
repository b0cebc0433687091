"""A run's training images, or a random part of them, and to which of them each neuron answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from oltr.config import RunConfig
from oltr.console import Console
from oltr.data.image_access import Images
from oltr.data.manifest import Manifest
from oltr.figures.activation_averages import ActivationAverages, mean_picture
from oltr.figures.activations import Activations, activations
from oltr.figures.infused import Boxes, Infused, boxes, cut
from oltr.figures.infused_concepts import Concepts
from oltr.nn.network import Network
from oltr.runs.run_outputs import best_device
from oltr.runs.views import all_pictures, chosen_images, subset, views_of
from oltr.samplers import generator
from oltr.training.precision import autocast

AT_MOST = (
    5000  # images looked at: the strongest of so many show a concept, and a CPU has seen them in seconds
)
PATCHES, AVERAGED = 9, 50  # a sheet of 3×3; means of 50 images, or a tenth of what there is


@dataclass(frozen=True, eq=False)
class TrainingSample:
    """Training images in random order, and what the neurons make of them."""

    config: RunConfig
    numbers: np.ndarray  # n int64, of the images in the train split
    images: Images
    found: Activations
    of: int  # training images in all

    @property
    def described(self) -> str:
        """Which images these are, in words."""
        if len(self.numbers) == self.of:
            return f"all {self.of:,} training images"
        return f"{len(self.numbers):,} of {self.of:,} training images, drawn with seed {self.config.seed}"

    def squares(self, neuron: int) -> Boxes:
        """Where the neuron is strongest."""
        return boxes(self.found, neuron, self.config.data.image_size)

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
        least, most = (
            np.stack([mean_picture(self.pictures(numbers[neuron].numpy())) for neuron in chosen])
            for numbers in (self.found.least, self.found.most)
        )
        return ActivationAverages(chosen, least, most, self.found.most.shape[1], self.described)

    def pictures(self, images: np.ndarray) -> np.ndarray:
        """Some of the images: n×s×s×3 uint8."""
        return all_pictures(subset(self.images, images), self.config)


def training_sample(
    network: Network, config: RunConfig, manifest: Manifest, console: Console, at_most: int = AT_MOST
) -> TrainingSample:
    """One pass over the training images, or over `at_most` of them, drawn by the run's seed."""
    total = manifest.sizes()["train"]
    # Shuffled in any case: among images that a neuron cannot tell apart none is to come first by its class.
    numbers = generator(config.seed, total).permutation(total)[:at_most]
    images = chosen_images(config, manifest, "train", numbers, console)
    device = best_device()
    network.to(device)
    averaged = min(AVERAGED, max(1, len(numbers) // 10))
    with console.progress("looking at training images") as progress, autocast(device, config.precision):
        views = views_of(images, config, device, progress)
        found = activations(network, views, PATCHES, averaged)
    return TrainingSample(config, numbers, images, found, total)
