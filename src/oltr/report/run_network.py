"""A run's network and what it is shown, opened once for all figures of a page."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oltr.config import RunConfig
from oltr.console import Console
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.metrics.shots import GROUPS, shot_groups
from oltr.nn.heads import Output
from oltr.nn.network import Network
from oltr.runs.explain.training_sample import TrainingSample, training_sample
from oltr.runs.read_outputs import own_manifest
from oltr.runs.run_outputs import best_device, load_network
from oltr.runs.views import chosen_images, pictures_of, views_of
from oltr.samplers import generator
from oltr.training.precision import autocast
from oltr.training.run_folder import RunFolder


class Chosen(NamedTuple):
    """A few of a run's test and open images."""

    views: Tensor  # N×3×s×s
    pictures: np.ndarray  # N×s×s×3 uint8
    names: list[str]


class RunNetwork:
    """Each part is made when it is first asked for, and kept."""

    def __init__(self, folder: RunFolder, console: Console):
        self.folder, self.console = folder, console

    @cached_property
    def config(self) -> RunConfig:
        return self.folder.config()

    @cached_property
    def manifest(self) -> Manifest:
        """The run's own data."""
        return own_manifest(self.folder)

    @cached_property
    def network(self) -> Network:
        """The trained network, on the best device."""
        return load_network(self.folder).to(best_device())

    @cached_property
    def chosen(self) -> Chosen:
        """One test image of each shot group and one open image, those that the run's seed draws."""
        config, manifest, device = self.config, self.manifest, best_device()
        groups = np.append(shot_groups(manifest.train_counts(), config.shots), "open")
        views: list[Tensor] = []
        names: list[str] = []
        for place, kind in enumerate((*GROUPS, "open")):
            split = "open" if kind == "open" else "test"
            rows = np.flatnonzero(groups[manifest.labels(split)] == kind)  # label -1 takes the last
            if len(rows):
                number = generator(config.seed, place).choice(rows, 1)
                views += views_of(
                    chosen_images(config, manifest, split, number, self.console), config, device
                )
                label = manifest.rows(split)["label"].iloc[int(number[0])]
                names.append(f"{label}\n(open)" if kind == "open" else f"{label}\n({kind}-shot)")
        if not views:
            raise UserError("The run has no test images that could be looked at.")
        batch = torch.cat(views)
        return Chosen(batch, pictures_of(batch, config.data), names)

    @cached_property
    def output(self) -> Output:
        """What the network says of the chosen images."""
        views = self.chosen.views
        with torch.inference_mode(), autocast(views.device, self.config.precision):
            return self.network(views)

    @cached_property
    def sample(self) -> TrainingSample:
        """One pass over the training images, or over a random part of them."""
        return training_sample(self.network, self.config, self.manifest, self.console)
