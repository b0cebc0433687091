"""What a neuron stands for, by contrast: the mean of the images it answers to least and most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from oltr.figures.panels import show_picture
from oltr.figures.style import new_figure
from oltr.runs.explain.training_sample import ActivationAverages


def activation_averages_figure(
    pictures: np.ndarray, averages: ActivationAverages, names: Sequence[str]
) -> Figure:
    """One row per neuron: the image into which it is infused most, the least and the most activated mean."""
    figure = new_figure(6.6, 0.8 + 2.3 * len(pictures))
    grid = figure.subplots(len(pictures), 3, squeeze=False)
    columns = zip(grid, pictures, names, averages.neurons, averages.least, averages.most, strict=True)
    for axes, picture, name, neuron, *means in columns:
        show_picture(axes[0], picture, name)
        for panel, mean, which in zip(axes[1:], _stretched(*means), ("least", "most"), strict=True):
            show_picture(panel, mean, f"neuron {neuron}:\n{which} activated average")
    figure.suptitle(
        f"The neuron into which most is infused: means of {averages.images} images each,\n"
        f"among {averages.looked_at}; contrast stretched alike",
        fontsize="medium",
    )
    return figure


def _stretched(*means: np.ndarray) -> list[np.ndarray]:
    """Means are pale: both to the whole range of colours, by the range that they have together."""
    low, high = np.quantile(means, (0.005, 0.995))
    return [np.rint(255 * ((mean - low) / max(high - low, 1)).clip(0, 1)).astype(np.uint8) for mean in means]
