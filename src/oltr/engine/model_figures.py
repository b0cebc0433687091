"""From a run folder to the figures of what its network sees, for a few of its test images chosen by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from oltr.analysis.activation_averages import activation_averages_figure
from oltr.analysis.attention_maps import attention_maps
from oltr.analysis.attention_overlay import attention_figure
from oltr.analysis.infused import infused
from oltr.analysis.infused_concepts import concepts_figure
from oltr.config import RunConfig
from oltr.data.manifest import Manifest
from oltr.data.samplers import generator
from oltr.engine.console import Console
from oltr.engine.precision import autocast
from oltr.engine.read_outputs import own_manifest
from oltr.engine.run_folder import RunFolder
from oltr.engine.run_outputs import best_device, load_network
from oltr.engine.training_sample import training_sample
from oltr.engine.views import chosen_images, pictures_of, views_of
from oltr.errors import UserError
from oltr.evaluation.shots import GROUPS, shot_groups
from oltr.nn.heads import Output
from oltr.nn.network import Network

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Chosen(NamedTuple):
    """A run's network and a few of its images."""

    network: Network
    config: RunConfig
    manifest: Manifest
    views: Tensor  # N×3×s×s
    pictures: np.ndarray  # N×s×s×3 uint8
    names: list[str]


def attention_of(folder: RunFolder, console: Console) -> Figure:
    """Attention over one test image of each shot group and one open image."""
    chosen = _chosen(folder, console)
    with autocast(chosen.views.device, chosen.config.precision):
        maps = attention_maps(chosen.network, chosen.views)
    return attention_figure(chosen.pictures, maps, chosen.names)


def infused_of(folder: RunFolder, console: Console) -> Figure:
    """The concepts that the memory infuses into one test image of each shot group and one open image."""
    chosen = _chosen(folder, console)
    given = infused(_output(chosen))  # a run without a memory is refused before its images are gone through
    sample = training_sample(chosen.network, chosen.config, chosen.manifest, console)
    return concepts_figure(chosen.pictures, sample.concepts(given), chosen.names)


def activation_averages_of(folder: RunFolder, console: Console) -> Figure:
    """Least and most activated mean images of the neuron that is infused most into each of those images."""
    chosen = _chosen(folder, console)
    given = infused(_output(chosen), top=1)
    sample = training_sample(chosen.network, chosen.config, chosen.manifest, console)
    averages = sample.averages(given.neurons[:, 0].tolist())
    return activation_averages_figure(chosen.pictures, averages, chosen.names)


@torch.inference_mode()
def _output(chosen: _Chosen) -> Output:
    with autocast(chosen.views.device, chosen.config.precision):
        return chosen.network(chosen.views)


def _chosen(folder: RunFolder, console: Console) -> _Chosen:
    """One image of each kind, those that the run's seed draws."""
    config, manifest, device = folder.config(), own_manifest(folder), best_device()
    network = load_network(folder).to(device)
    groups = np.append(shot_groups(manifest.train_counts(), config.shots), "open")
    views: list[Tensor] = []
    names: list[str] = []
    for place, kind in enumerate((*GROUPS, "open")):
        split = "open" if kind == "open" else "test"
        rows = np.flatnonzero(groups[manifest.labels(split)] == kind)  # label -1 takes the last
        if len(rows):
            number = generator(config.seed, place).choice(rows, 1)
            views += views_of(chosen_images(config, manifest, split, number, console), config, device)
            label = manifest.rows(split)["label"].iloc[int(number[0])]
            names.append(f"{label}\n(open)" if kind == "open" else f"{label}\n({kind}-shot)")
    if not views:
        raise UserError("The run has no test images that could be looked at.")
    batch = torch.cat(views)
    return _Chosen(network, config, manifest, batch, pictures_of(batch, config.data), names)
