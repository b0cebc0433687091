"""The figures of what a run's network is and sees, for a few of its test images chosen by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oltr.figures.activation_averages import activation_averages_figure
from oltr.figures.attention_overlay import attention_figure
from oltr.figures.infused_concepts import concepts_figure
from oltr.figures.method_figure import method_figure
from oltr.figures.method_schema import method_schema
from oltr.report.run_network import RunNetwork
from oltr.runs.explain.attention_maps import attention_maps
from oltr.runs.explain.infused import infused
from oltr.training.precision import autocast

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def method_of(run: RunNetwork) -> Figure:
    """The boxes from image to answer; no images are needed."""
    config = run.config
    return method_figure(method_schema(run.network, config.method, config.backbone, config.data.image_size))


def attention_of(run: RunNetwork) -> Figure:
    """Attention over one test image of each shot group and one open image."""
    chosen = run.chosen
    with autocast(chosen.views.device, run.config.precision):
        maps = attention_maps(run.network, chosen.views)
    return attention_figure(chosen.pictures, maps, chosen.names)


def infused_of(run: RunNetwork) -> Figure:
    """The concepts that the memory infuses into one test image of each shot group and one open image."""
    given = infused(run.output)  # a run without a memory is refused before its images are gone through
    return concepts_figure(run.chosen.pictures, run.sample.concepts(given), run.chosen.names)


def activation_averages_of(run: RunNetwork) -> Figure:
    """Least and most activated mean images of the neuron that is infused most into each of those images."""
    given = infused(run.output, top=1)
    averages = run.sample.averages(given.neurons[:, 0].tolist())
    return activation_averages_figure(run.chosen.pictures, averages, run.chosen.names)
