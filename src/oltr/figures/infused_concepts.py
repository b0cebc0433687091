"""The paper's figure of infused concepts: images, and patches that stand for the neurons infused most."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure, FigureBase

from oltr.figures.choose_runs import Runs, best_first, first_that_can
from oltr.figures.contact_sheet import contact_sheet
from oltr.figures.figure import RunFigure
from oltr.figures.run_images import kept_sample, network_output, shown_images
from oltr.figures.style import bare, new_figure, show_picture, without
from oltr.runs.explain.infused import Concepts, infused
from oltr.runs.trained_run import TrainedRun

WORDS = 100  # characters that a line above the pictures has room for


def concepts_figure(pictures: np.ndarray, concepts: Concepts, names: Sequence[str]) -> Figure:
    """One row for each of N×s×s×3 uint8 pictures: the image, and a sheet of patches for each neuron."""
    columns = 1 + concepts.infused.neurons.shape[1]
    figure = new_figure(2.1 * columns, 0.8 + 2.35 * len(pictures))
    draw_concepts(figure, pictures, concepts, names)
    return figure


def draw_concepts(place: FigureBase, pictures: np.ndarray, concepts: Concepts, names: Sequence[str]) -> None:
    """The same on a figure or a part of one."""
    found = concepts.infused
    grid = place.subplots(len(pictures), 1 + found.neurons.shape[1], squeeze=False)
    for row, axes in enumerate(grid):
        show_picture(axes[0], pictures[row], names[row])
        parts = zip(axes[1:], found.neurons[row], found.amounts[row], found.direct[row], strict=True)
        for panel, neuron, amount, direct in parts:
            panel.set_title(f"neuron {neuron}", fontsize="small")
            if (patches := concepts.patches.get(int(neuron))) is None:
                without(panel, "no patches")
            else:
                columns = int(np.ceil(np.sqrt(len(patches))))
                panel.imshow(contact_sheet(patches, columns, zoom=1), interpolation="nearest")
                bare(panel)
            words = f"infused {amount:+.3g}, direct {direct:.3g}".replace("-", "−")
            panel.set_xlabel(words, fontsize="x-small")
    if concepts.missing:
        words = f"Concepts from the memory: no patches of the neurons infused most. {concepts.missing}"
        place.suptitle(textwrap.fill(words, WORDS), fontsize="medium", parse_math=False)
        return
    if concepts.whole:
        kind = "images that activate each neuron most (whole: the place within is not known)"
    else:
        side = next(iter(concepts.patches.values())).shape[1]
        kind = f"patches ({side} of {pictures.shape[1]} px) that activate each neuron most"
    where = f",\namong {concepts.looked_at}" if concepts.looked_at else ""
    place.suptitle(f"Concepts from the memory: {kind}{where}", fontsize="medium")


def of_run(run: TrainedRun) -> Figure:
    """Of one test image of each shot group and one open image."""
    shown = shown_images(run)
    given = infused(network_output(run, shown.views))  # refuses a run without a memory before the long pass
    return concepts_figure(shown.pictures, kept_sample(run).concepts(given), shown.names)


def draw(runs: Runs) -> Figure:
    return first_that_can(best_first(runs), of_run)


FIGURE = RunFigure(
    order=90,
    name="infused",
    title="Concepts infused from the memory",
    paper="Fig. 7, 14",
    caption="One test image of each shot group and one open image, the neurons to which the memory adds "
    "most, and the training patches that activate these most. Look for related classes: a rare class should "
    "borrow from common ones with similar parts.",
    needs="the images, and a method with a memory",
    draw=draw,
    photographs=True,
)
