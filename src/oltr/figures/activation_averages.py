"""What a neuron stands for, by contrast: the mean of the images it answers to least and most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, best_first, first_that_can
from oltr.figures.figure import RunFigure
from oltr.figures.run_images import ShownImages, kept_sample, network_output, shown_images
from oltr.figures.style import new_figure, show_picture
from oltr.runs.explain.infused import infused
from oltr.runs.explain.training_sample import ActivationAverages
from oltr.runs.trained_run import TrainedRun

ALIGNED = 0.025  # share of edges in the same place: faces have 0.04 to 0.06, flowers less than 0.01


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
        f"The most infused neuron: means of {averages.images} images each,\n"
        f"among {averages.looked_at}; same contrast stretch for both",
        fontsize="medium",
    )
    return figure


def _stretched(*means: np.ndarray) -> list[np.ndarray]:
    """Means are pale: both to the whole range of colours, by the range that they have together."""
    low, high = np.quantile(means, (0.005, 0.995))
    return [np.rint(255 * ((mean - low) / max(high - low, 1)).clip(0, 1)).astype(np.uint8) for mean in means]


def of_run(run: TrainedRun) -> Figure:
    """Of the neuron infused most into one test image of each shot group and into one open image."""
    shown, averages = _averaged(run)
    return activation_averages_figure(shown.pictures, averages, shown.names)


def draw(runs: Runs) -> Figure:
    """The same, of the first run in whose averages there is something to see."""
    return first_that_can(best_first(runs), _of_aligned_images)


def _of_aligned_images(run: TrainedRun) -> Figure:
    shown, averages = _averaged(run)
    if averages.aligned < ALIGNED:
        raise UserError(
            "The averages of the training images are a grey blur.",
            "Averages show something only where objects have the same place in every image, as faces do.",
        )
    return activation_averages_figure(shown.pictures, averages, shown.names)


def _averaged(run: TrainedRun) -> tuple[ShownImages, ActivationAverages]:
    shown = shown_images(run)
    given = infused(network_output(run, shown.views), top=1)
    return shown, kept_sample(run).averages(given.neurons[:, 0].tolist())


FIGURE = RunFigure(
    order=100,
    name="activation",
    title="What infused neurons respond to",
    paper="Fig. 15",
    caption="The mean of the training images that activate a neuron least, and of those that do so most. "
    "Look for a visible difference: then the neuron responds to something recognisable.",
    needs="aligned images (objects in the same place), and a method with a memory",
    draw=draw,
    photographs=True,
)
