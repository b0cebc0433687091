"""What the images of each shot group, and the open ones, are taken for: readable at any number of classes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, panels
from oltr.figures.figure import BEYOND, RunFigure
from oltr.figures.run_names import short_names
from oltr.figures.style import SERIES, new_figure
from oltr.metrics.shots import GROUPS
from oltr.runs.outputs import OPEN

TRUE = (*GROUPS, "open")
TAKEN_FOR = ("correct class", *(f"other {group}" for group in GROUPS), "unknown")
RIGHT, WRONG = (np.array(to_rgb(colour)) for colour in SERIES[:2])
PER_LINE = 2  # runs beside each other; more would make the cells too small to read


def confusion(predictions: Tensor, labels: Tensor, groups: np.ndarray) -> np.ndarray:
    """Images of each TRUE kind by what they are TAKEN_FOR, 4×5 int64; -1: open images have no right class.

    Of N predictions and labels, -1 for unknown, and the shot group of each of K classes.
    """
    place = torch.tensor([*map(GROUPS.index, groups.tolist()), len(GROUPS)])  # the last entry is that of -1
    taken_for = (1 + place[predictions]).masked_fill((predictions == labels) & (labels != OPEN), 0)
    cells = len(TRUE) * len(TAKEN_FOR)
    tally = torch.bincount(len(TAKEN_FOR) * place[labels] + taken_for, minlength=cells)
    matrix = tally.reshape(len(TRUE), len(TAKEN_FOR)).numpy()
    matrix[-1, 0] = -1
    return matrix


def confusion_figure(runs: Mapping[str, np.ndarray]) -> Figure:
    """One matrix per run, in percent of the images of each row."""
    if not runs:
        raise UserError("There is no run whose confusion could be drawn.")
    lines, columns = -(-len(runs) // PER_LINE), min(len(runs), PER_LINE)
    figure = new_figure(0.9 + 4.1 * columns, 0.4 + 2.9 * lines)
    for number, (name, matrix) in enumerate(short_names(runs).items()):
        axes = figure.add_subplot(lines, columns, number + 1)
        _draw(axes, matrix)
        axes.set_title(name, loc="left", fontsize="medium")
        axes.set_xlabel("predicted", fontsize="small")
        axes.set_ylabel("true", fontsize="small")
    figure.supxlabel("percent of the images of a row (number of images); blue: correct", fontsize="small")
    return figure


def _draw(axes: Axes, matrix: np.ndarray) -> None:
    images = matrix.clip(min=0).sum(axis=1)
    share = matrix.clip(min=0) / np.maximum(images, 1)[:, None]
    right = np.zeros(matrix.shape, dtype=bool)
    right[:-1, 0] = right[-1, -1] = True
    hue = np.where(right[..., None], RIGHT, WRONG)
    # The square root keeps a few percent apart from none.
    axes.imshow(1 - np.sqrt(share)[..., None] * (1 - hue), aspect="auto")
    for (row, column), part in np.ndenumerate(share):
        if matrix[row, column] >= 0 and images[row]:
            text = f"{100 * part:.1f}\n({matrix[row, column]:,})"
        else:
            text = "–"
        ink = "white" if part > 0.5 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize="x-small", color=ink)
    rows = [f"{kind}\n({count:,})" for kind, count in zip(TRUE, images, strict=True)]
    axes.set_yticks(range(len(TRUE)), rows, fontsize="x-small")
    columns = [kind.replace(" ", "\n") for kind in TAKEN_FOR]
    axes.set_xticks(range(len(TAKEN_FOR)), columns, fontsize="x-small")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw(runs: Runs) -> Figure:
    return confusion_figure(
        {run.name: confusion(run.decisions.predictions, run.decisions.labels, run.groups) for run in runs}
    )


FIGURE = RunFigure(
    order=50,
    name="confusion",
    title="Confusion matrix by shot group",
    paper=BEYOND,
    caption="Rows are the true shot group, columns the prediction. Look along the few-shot row: errors "
    "towards many-shot classes mean a bias towards the head; errors towards unknown, a threshold that "
    "rejects rare classes.",
    needs="test images",
    draw=draw,
    choose=panels,
)
