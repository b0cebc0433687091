"""Which of many runs a figure shows."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from oltr.data.open_names import open_class_names
from oltr.errors import UserError
from oltr.report.loaded_run import LoadedRun

Runs = Sequence[LoadedRun]
PANELS = 4  # runs in a figure that has a panel for each; more would be too small to read


def baseline(runs: Runs) -> LoadedRun:
    """The run that others are measured against: the plain model if it is among them, else the first."""
    return next((run for run in runs if run.method == "plain"), runs[0])


def best_first(runs: Runs) -> Runs:
    """By falling closed-set accuracy, equal ones in the order given."""
    return sorted(runs, key=lambda run: -1.0 if run.accuracy is None else run.accuracy, reverse=True)


def panels(runs: Runs) -> Runs:
    """The baseline, the best, the best that has a memory, and others as far as there is room."""
    return _chosen(runs, [baseline(runs), *_remarkable(runs)], PANELS)


def panels_of_the_same_images(runs: Runs) -> Runs:
    """The same among those that were tested on the images of the best."""
    return panels(_alike(runs, best_first(runs)[0]))


def baseline_first(runs: Runs) -> Runs:
    """The baseline, and a few that were tested on its images; any few if none was."""
    over = baseline(runs)
    others = [run for run in runs if run is not over]
    alike = _alike(others, over) or others
    return [over, *_chosen(alike, _remarkable(alike), PANELS)]


def with_open(runs: Runs) -> Runs:
    """Those that were tested on open images; all, who then say why not, if none was."""
    return [run for run in runs if run.unseen is not None] or runs


def with_open_classes(runs: Runs) -> Runs:
    """Those of them whose data still tell the classes of these images."""
    return [run for run in with_open(runs) if run.unseen is not None and _told(run)] or with_open(runs)


def with_memory(runs: Runs) -> Runs:
    """The best few that have one."""
    found = [run for run in runs if run.outputs["test"].reachability is not None]
    return _chosen(found, best_first(found), PANELS)


def with_meta_embedding(runs: Runs) -> Runs:
    """The best few that have one; not each has a memory, which only its weights tell."""
    found = [run for run in runs if has_meta_embedding(run)]
    return _chosen(found, best_first(found), PANELS)


def has_meta_embedding(run: LoadedRun) -> bool:
    return run.outputs["test"].embeddings is not None


def _alike(runs: Runs, as_run: LoadedRun) -> list[LoadedRun]:
    return [run for run in runs if torch.equal(run.decisions.labels, as_run.decisions.labels)]


def _remarkable(runs: Runs) -> list[LoadedRun]:
    ranked = best_first(runs)
    return [*ranked[:1], *[run for run in ranked if has_meta_embedding(run)][:1]]


def _chosen(runs: Runs, before: Runs, most: int) -> Runs:
    """So many of the runs, those `before` first; in the order given, as in every table."""
    wanted = list(dict.fromkeys([*before, *runs]))[:most]
    return [run for run in runs if run in wanted]


def _told(run: LoadedRun) -> bool:
    try:
        open_class_names(run.manifest())
    except UserError:
        return False
    return True
