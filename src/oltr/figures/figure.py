"""What a figure declares of itself, and the list of all figures."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from matplotlib.figure import Figure

import oltr.figures
from oltr.figures.choose_runs import Runs, every_run

BEYOND = "beyond the paper"
OF_A_RUN = "oltr report RUN --figures DIR"
OF_SEVERAL = "oltr report RUN RUN ... --figures DIR"


@dataclass(frozen=True)
class RunFigure:
    """A figure of trained runs; a file of this folder declares one under the name FIGURE.

    `draw` raises UserError where these runs lack what it needs; it is None for a figure that takes trainings
    of its own, by the command in `made_by`.
    """

    order: int  # its place on the page
    name: str  # also of its files
    title: str
    paper: str  # the figure's number there, or BEYOND
    caption: str  # what it shows and what to look for
    needs: str
    draw: Callable[[Runs], Figure] | None
    choose: Callable[[Runs], Runs] = every_run  # which of the runs it shows
    made_by: str = OF_A_RUN
    photographs: bool = False  # shows images, whose colours must stay as they are


def all_figures() -> list[RunFigure]:
    """The figures that the files of this folder declare, in the order of the page."""
    names = [found.name for found in pkgutil.iter_modules(oltr.figures.__path__)]
    modules = [import_module(f"oltr.figures.{name}") for name in names]
    declared = [module.FIGURE for module in modules if hasattr(module, "FIGURE")]
    return sorted(declared, key=lambda figure: figure.order)
