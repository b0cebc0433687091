"""Attention laid over the images it was computed for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, best_first, first_that_can
from oltr.figures.figure import RunFigure
from oltr.figures.run_images import ShownImages, shown_images
from oltr.figures.style import bare, new_figure, show_picture, without
from oltr.runs.explain.attention_maps import AttentionMaps, attention_maps
from oltr.runs.trained_run import TrainedRun
from oltr.training.precision import autocast

COLOURS = "viridis"  # from dark to bright for every eye
COARSEST = 4  # positions a side: fewer show nothing of where a network looks
SMOOTH_FROM = 5  # positions a side: on a coarser map, smoothing would show places that were never looked at
# attribute → title, what its numbers are, why a network may lack it
COLUMNS = {
    "self_attention": (
        "self-attention ‖SA(f)‖",
        "length",
        "no self-attention:\nsettings.attention is spatial",
    ),
    "spatial": ("spatial attention MA(f)", "weight", "no spatial attention:\nsettings.attention is self"),
    "modulated": ("modulated ‖MA(f) ⊗ SA(f)‖", "length", "not modulated: needs self-\nand spatial attention"),
}


def attention_figure(pictures: np.ndarray, maps: AttentionMaps, names: Sequence[str]) -> Figure:
    """One row for each of N×s×s×3 uint8 pictures: image, self-attention, spatial, modulated attention."""
    figure = new_figure(8.4, 0.75 + 2.2 * len(pictures))
    draw_attention(figure, pictures, maps, names)
    return figure


def draw_attention(
    place: FigureBase, pictures: np.ndarray, maps: AttentionMaps, names: Sequence[str]
) -> None:
    """The same on a figure or a part of one."""
    grid = place.subplots(len(pictures), 1 + len(COLUMNS), squeeze=False)
    for row, (axes, picture, name) in enumerate(zip(grid, pictures, names, strict=True)):
        show_picture(axes[0], picture, name)
        for panel, (part, (title, unit, missing)) in zip(axes[1:], COLUMNS.items(), strict=True):
            values = getattr(maps, part)
            if row == 0:
                panel.set_title(title, fontsize="small")
            if values is None:
                without(panel, missing)
            else:
                _overlay(panel, picture, values[row], unit)
    height, width = maps.size
    scale = "colours from 0 (dark) to the panel's maximum (bright)"
    place.suptitle(f"Attention on a map of {height}×{width} positions, {scale}", fontsize="medium")


def _overlay(axes: Axes, picture: np.ndarray, values: np.ndarray, unit: str) -> None:
    side = picture.shape[0]
    axes.imshow(picture.mean(axis=2), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.imshow(
        values,
        cmap=COLOURS,
        alpha=0.6,
        vmin=0,  # from nothing on: differences of a thousandth are not to look like day and night
        vmax=values.max() or 1,
        extent=(-0.5, side - 0.5, side - 0.5, -0.5),
        interpolation="bilinear" if min(values.shape) >= SMOOTH_FROM else "nearest",
    )
    bare(axes)
    axes.set_xlabel(f"{unit} {values.min():.3g} to {values.max():.3g}", fontsize="x-small")


def of_run(run: TrainedRun) -> Figure:
    """Over one test image of each shot group and one open image."""
    shown, maps = _looked_at(run)
    return attention_figure(shown.pictures, maps, shown.names)


def draw(runs: Runs) -> Figure:
    """The same, of the first run whose map is fine enough to see anything."""
    return first_that_can(best_first(runs), _fine_enough)


def _fine_enough(run: TrainedRun) -> Figure:
    shown, maps = _looked_at(run)
    if min(maps.size) < COARSEST:
        size, least = "×".join(map(str, maps.size)), f"{COARSEST}×{COARSEST}"
        raise UserError(
            f"The attention map has {size} positions, too few to see anything.",
            f"At least {least} are drawn.",
            "larger images (--image-size)",
        )
    return attention_figure(shown.pictures, maps, shown.names)


def _looked_at(run: TrainedRun) -> tuple[ShownImages, AttentionMaps]:
    shown = shown_images(run)
    with autocast(run.device, run.config.precision):
        return shown, attention_maps(run.network, shown.views)


FIGURE = RunFigure(
    order=80,
    name="attention",
    title="Modulated attention",
    paper="Fig. 4",
    caption="Attention maps for one test image of each shot group and one open image. Look for attention "
    "that follows the object, and that differs between classes which are easily confused.",
    needs="the images, and a method with attention",
    draw=draw,
    photographs=True,
)
