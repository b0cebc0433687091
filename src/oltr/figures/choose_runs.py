"""Which of many runs a figure shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from matplotlib.figure import Figure

from oltr.errors import UserError
from oltr.figures.run_names import shortened

if TYPE_CHECKING:
    from oltr.runs.trained_run import TrainedRun

Runs: TypeAlias = "Sequence[TrainedRun]"
PANELS = 4  # runs in a figure that has a panel for each; more would be too small to read


def every_run(runs: Runs) -> Runs:
    return runs


def baseline(runs: Runs) -> TrainedRun:
    """The run that others are measured against: the plain model if it is among them, else the first."""
    return next((run for run in runs if run.method == "plain"), runs[0])


def best_first(runs: Runs) -> Runs:
    """By falling closed-set accuracy, equal ones in the order given."""
    return sorted(runs, key=lambda run: -1.0 if run.accuracy is None else run.accuracy, reverse=True)


def panels(runs: Runs) -> Runs:
    """The baseline, the best, the best that has a memory, and others as far as there is room."""
    return _chosen(runs, [baseline(runs), *_remarkable(runs)])


def panels_of_the_same_images(runs: Runs) -> Runs:
    """The same among those that were tested on the images of the best."""
    return panels(_alike(runs, best_first(runs)[0]))


def baseline_first(runs: Runs) -> Runs:
    """The baseline, and a few that were tested on its images; any few if none was."""
    over = baseline(runs)
    others = [run for run in runs if run is not over]
    alike = _alike(others, over) or others
    return [over, *_chosen(alike, _remarkable(alike))]


def with_open(runs: Runs) -> Runs:
    """Those that were tested on open images; if none was, all of them, which then say why not."""
    return [run for run in runs if run.unseen is not None] or runs


def with_memory(runs: Runs) -> Runs:
    """The best few that have one."""
    found = [run for run in runs if run.outputs["test"].reachability is not None]
    return _chosen(found, best_first(found))


def with_meta_embedding(runs: Runs) -> Runs:
    """The best few that have one; whether it has a memory only the weights tell."""
    found = [run for run in runs if has_meta_embedding(run)]
    return _chosen(found, best_first(found))


def has_meta_embedding(run: TrainedRun) -> bool:
    return run.outputs["test"].embeddings is not None


def first_that_can(runs: Runs, draw: Callable[[TrainedRun], Figure]) -> Figure:
    """The figure of the first run that has what it needs, with that run's name where there are several."""
    problem: UserError | None = None
    for run in runs:
        try:
            figure = draw(run)
        except UserError as why:
            problem = problem or why
        else:
            if len(runs) > 1:
                title = f"{shortened(run.name, 60)}\n{figure.get_suptitle()}".strip()
                figure.suptitle(title, fontsize="medium")
            return figure
    raise problem or UserError("There are no runs to draw.")


def _alike(runs: Runs, as_run: TrainedRun) -> list[TrainedRun]:
    return [run for run in runs if run.decisions.labels.equal(as_run.decisions.labels)]


def _remarkable(runs: Runs) -> list[TrainedRun]:
    ranked = best_first(runs)
    return [*ranked[:1], *[run for run in ranked if has_meta_embedding(run)][:1]]


def _chosen(runs: Runs, before: Runs) -> Runs:
    """As many runs as there are panels, those `before` first; in the order given, as in every table."""
    wanted = list(dict.fromkeys([*before, *runs]))[:PANELS]
    return [run for run in runs if run in wanted]
