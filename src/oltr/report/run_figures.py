"""From loaded runs to each figure: most need outputs alone, the last ones the networks too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from matplotlib.figure import Figure

from oltr.data.open_names import open_class_names
from oltr.errors import UserError
from oltr.figures.calibration import calibration, calibration_figure
from oltr.figures.centroids import CentroidPlane, centroid_plane, centroids_figure, find_centroids
from oltr.figures.class_gain import class_gain, class_gain_figure
from oltr.figures.confusion import confusion, confusion_figure
from oltr.figures.distribution import class_distribution
from oltr.figures.embedding import embedding, embedding_figure
from oltr.figures.open_classes_sweep import open_classes_sweep, open_classes_sweep_figure
from oltr.figures.oscr import oscr_curve, oscr_figure
from oltr.figures.panels import shortened
from oltr.figures.reachability import score_histogram, score_histogram_figure
from oltr.figures.risk_coverage import risk_coverage, risk_coverage_figure
from oltr.figures.spectrum import spectrum, spectrum_figure
from oltr.figures.threshold_sweep import threshold_sweep, threshold_sweep_figure
from oltr.report.choose_runs import Runs, best_first, has_meta_embedding
from oltr.report.loaded_run import LoadedRun

if TYPE_CHECKING:
    from oltr.report.run_network import RunNetwork

T = TypeVar("T")


def draw_distribution(runs: Runs) -> Figure:
    """Training images per class, which all runs must share."""
    first = runs[0]
    if any(not np.array_equal(run.counts, first.counts) for run in runs):
        raise UserError(
            "The runs learned from different numbers of images per class.", try_this="a report of each"
        )
    return class_distribution(first.counts, first.shots)


def draw_spectrum(runs: Runs) -> Figure:
    return spectrum_figure({run.name: spectrum(run.decisions, run.counts, run.shots) for run in runs})


def draw_embedding(runs: Runs) -> Figure:
    return embedding_figure(
        {run.name: embedding(run.outputs["test"], run.unseen, run.counts, shots=run.shots) for run in runs}
    )


def draw_centroids(runs: Runs) -> Figure:
    """Of those runs that have a memory."""
    planes = {run.name: plane for run in runs if (plane := _centroids(run)) is not None}
    return centroids_figure(planes)


def _centroids(run: LoadedRun) -> CentroidPlane | None:
    folder = run.opened.folder
    memory = find_centroids(folder.load_weights(folder.model))
    if memory is None:
        return None
    return centroid_plane(memory, run.outputs["test"], run.unseen, run.counts, shots=run.shots)


def draw_class_gain(runs: Runs) -> Figure:
    """Over the first run."""
    if len(runs) < 2:
        raise UserError("There is one run only, so no gain over another.", try_this="oltr report PLAIN RUN")
    baseline, *others = runs
    gains = {run.name: class_gain(run.decisions, baseline.decisions, run.counts, run.shots) for run in others}
    return class_gain_figure(gains, baseline.name)


def draw_threshold_sweep(runs: Runs) -> Figure:
    return threshold_sweep_figure({run.name: _by_its_score(run, threshold_sweep) for run in runs})


def draw_open_classes_sweep(runs: Runs) -> Figure:
    return open_classes_sweep_figure(
        {
            run.name: open_classes_sweep(
                run.outputs, open_classes(run), run.score, threshold=run.threshold, read=run.read
            )
            for run in runs
        }
    )


def draw_reachability(runs: Runs) -> Figure:
    """Of runs that all have a memory."""
    if not runs:
        raise UserError("There is no memory to reach.", try_this="a run of the method oltr")
    return score_histogram_figure(
        {run.name: score_histogram(run.outputs, run.counts, shots=run.shots) for run in runs}
    )


def draw_scores(runs: Runs) -> Figure:
    return score_histogram_figure({run.name: _by_its_score(run, score_histogram) for run in runs})


def draw_confusion(runs: Runs) -> Figure:
    return confusion_figure({run.name: confusion(run.decisions, run.counts, run.shots) for run in runs})


def draw_oscr(runs: Runs) -> Figure:
    return oscr_figure({run.name: oscr_curve(run.outputs, run.score, read=run.read) for run in runs})


def draw_risk_coverage(runs: Runs) -> Figure:
    return risk_coverage_figure(
        {run.name: risk_coverage(run.outputs, run.score, read=run.read) for run in runs}
    )


def draw_calibration(runs: Runs) -> Figure:
    return calibration_figure({run.name: calibration(run.outputs) for run in runs})


def draw_method(runs: Runs) -> Figure:
    from oltr.report.model_figures import method_of

    # The best that has most of the paper's parts: of a network without them there is little to see.
    ranked = sorted(best_first(runs), key=has_meta_embedding, reverse=True)
    return _of_the_first_that_can(ranked, method_of, images=False)


def draw_attention(runs: Runs) -> Figure:
    from oltr.report.model_figures import attention_of

    return _of_the_first_that_can(best_first(runs), attention_of)


def draw_infused(runs: Runs) -> Figure:
    from oltr.report.model_figures import infused_of

    return _of_the_first_that_can(best_first(runs), infused_of)


def draw_activation_averages(runs: Runs) -> Figure:
    from oltr.report.model_figures import activation_averages_of

    return _of_the_first_that_can(best_first(runs), activation_averages_of)


def _by_its_score(run: LoadedRun, numbers: Callable[..., T]) -> T:
    """Numbers of the score that calls the run's images unknown, with its threshold."""
    return numbers(
        run.outputs, run.counts, run.score, shots=run.shots, threshold=run.threshold, read=run.read
    )


def open_classes(run: LoadedRun) -> list[str]:
    """The class of each open image, which only the run's data know."""
    if run.unseen is None:
        raise UserError("There are no open images.", try_this="data with images in the split open")
    return open_class_names(run.manifest())


def _of_the_first_that_can(runs: Runs, of: Callable[[RunNetwork], Figure], images: bool = True) -> Figure:
    """One run is enough to look at."""
    problem: UserError | None = None
    for run in runs:
        try:
            if images:
                run.manifest()  # without them there is nothing to look at
            figure = of(run.opened)
        except UserError as why:
            problem = problem or why
        else:
            if len(runs) > 1:
                title = f"{shortened(run.name, 60)}\n{figure.get_suptitle()}".strip()
                figure.suptitle(title, fontsize="medium")
            return figure
    assert problem is not None
    raise problem
