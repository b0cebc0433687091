"""The memory after training: centroids among the direct features of their classes, in one plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, with_meta_embedding
from oltr.figures.embedding import COLOURS, KINDS, MARKERS, sample_images
from oltr.figures.figure import RunFigure
from oltr.figures.run_names import short_names
from oltr.figures.style import clean, new_figure
from oltr.nn.memory import squared_distances
from oltr.runs.outputs import Outputs
from oltr.runs.trained_run import TrainedRun

PER_LINE = 2
FEWEST = 3  # points; with fewer there is no plane


@dataclass(frozen=True, eq=False)
class Memorised:
    """The K×D centroids of a memory, and which classes have one, K bool."""

    centroids: Tensor
    known: Tensor


@dataclass(frozen=True, eq=False)
class CentroidPlane:
    """C centroids and n images, first many-shot, then few-shot, then open ones, in their principal plane."""

    classes: np.ndarray  # C int64
    class_kinds: np.ndarray  # C strings: many or few
    centroids: np.ndarray  # C×2 float64, in units of the features
    kinds: np.ndarray  # n strings: many, few or open
    rows: np.ndarray  # n int64, row numbers into the test split, or into the open one for kind open
    labels: np.ndarray  # n int64, -1 = open
    places: np.ndarray  # n×2 float64
    shares: tuple[float, float]  # of the variance of all these points, on either axis
    at_home: dict[
        str, float
    ]  # kind: share of all its test images whose nearest of all centroids is their own
    seed: int


def find_centroids(weights: Mapping[str, Tensor]) -> Memorised | None:
    """The memory among a network's weights; None if there is none."""
    name = next((name for name in weights if name.endswith("memory.centroids")), None)
    if name is None:
        return None
    return Memorised(weights[name].float(), weights[name.removesuffix("centroids") + "known"])


def centroid_plane(
    memory: Memorised,
    test: Outputs,
    unseen: Outputs | None,
    groups: np.ndarray,
    *,
    classes: int = 4,
    images: int = 20,
    seed: int = 0,
) -> CentroidPlane:
    """Up to `classes` many- and few-shot classes, their centroids and `images` images each, and open images.

    The plane is that of the first two principal components of all these points, X − mean = U S Vᵀ → U S.
    """
    found, wanted = tuple(memory.centroids.shape), (len(groups), test.features.shape[1])
    if found != wanted:
        raise UserError(f"The centroids are {found}, classes and features {wanted}.", "They are of two runs.")
    kinds, rows = sample_images(test, unseen, groups, classes, images, seed)
    is_open = kinds == "open"
    labels, direct = test.labels.numpy()[rows[~is_open]], test.features.numpy()[rows[~is_open]]
    chosen = np.array([c for c in dict.fromkeys(labels.tolist()) if memory.known[c]], dtype=np.int64)
    points = [memory.centroids.numpy()[chosen], direct]
    if unseen:
        labels = np.append(labels, np.full(int(is_open.sum()), -1))
        points.append(unseen.features.numpy()[rows[is_open]])
    places, shares = principal_plane(np.concatenate(points).astype(np.float64))
    return CentroidPlane(
        classes=chosen,
        class_kinds=groups[chosen],
        centroids=places[: len(chosen)],
        kinds=kinds,
        rows=rows,
        labels=labels,
        places=places[len(chosen) :],
        shares=shares,
        at_home=_at_home(memory, test, groups),
        seed=seed,
    )


def principal_plane(points: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """n×D → n×2, and the share of the variance on either axis; directions are such that the sum of a
    direction's entries is not negative."""
    if len(points) < FEWEST:
        raise UserError(f"There are only {len(points)} centroids and images; at least {FEWEST} are needed.")
    if not np.isfinite(points).all():
        raise UserError(
            "Centroids or features hold NaN or infinite values.",
            "The training of this network probably diverged.",
        )
    left, sizes, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    if not sizes.any():
        raise UserError("All centroids and images are the same point, so there is nothing to arrange.")
    signs = np.where(directions.sum(axis=1) < 0, -1.0, 1.0)
    places, shares = np.zeros((len(points), 2)), np.zeros(2)
    for axis in range(min(2, len(sizes))):
        places[:, axis] = signs[axis] * left[:, axis] * sizes[axis]
        shares[axis] = sizes[axis] ** 2 / (sizes**2).sum()
    return places, (float(shares[0]), float(shares[1]))


def _at_home(memory: Memorised, test: Outputs, groups: np.ndarray) -> dict[str, float]:
    distances = squared_distances(test.features, memory.centroids)
    right = (distances.masked_fill(~memory.known, np.inf).argmin(dim=1) == test.labels).numpy()
    of = groups[test.labels.numpy()]
    return {kind: float(right[of == kind].mean()) for kind in ("many", "few") if (of == kind).any()}


def centroids_figure(runs: Mapping[str, CentroidPlane]) -> Figure:
    """A panel for each run: centroids as stars, and a thin line from each to the images of its class."""
    if not runs:
        raise UserError("There is no memory that could be drawn.", try_this="a run of the method oltr")
    lines, columns = -(-len(runs) // PER_LINE), min(len(runs), PER_LINE)
    figure = new_figure(6.4 if columns == 1 else 4.6 * columns, 0.7 + (5.2 if columns == 1 else 4.4) * lines)
    for number, (name, plane) in enumerate(short_names(runs, 48).items()):
        axes = figure.add_subplot(lines, columns, number + 1)
        _draw(axes, plane)
        first, second = (f"{100 * share:.0f} % of the variance" for share in plane.shares)
        clean(axes, f"PC 1 (feature units; {first})", f"PC 2 (feature units; {second})")
        home = ", ".join(f"{kind}-shot {100 * share:.0f} %" for kind, share in plane.at_home.items())
        title = f"{name}\nnearest centroid is that of the true class: {home}" if home else name
        axes.set_title(title, loc="left", fontsize="medium" if columns == 1 else "small", parse_math=False)
    first_run = next(iter(runs.values()))
    figure.legend(
        handles=_legend(first_run),
        title=f"images sampled with seed {first_run.seed}; one marker and colour per class",
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
    )
    return figure


def _draw(axes: Axes, plane: CentroidPlane) -> None:
    x, y = plane.places[plane.kinds == "open"].T
    axes.scatter(x, y, s=9, c=COLOURS["open"], alpha=0.45, linewidths=0)
    for kind in ("many", "few"):  # the tail on top: it is what one looks for
        labels = np.unique(plane.labels[plane.kinds == kind])
        for number, label in enumerate(labels):
            own, marker = plane.places[plane.labels == label], MARKERS[number % len(MARKERS)]
            x, y = own.T
            axes.scatter(x, y, s=13, c=COLOURS[kind], marker=marker, alpha=0.75, linewidths=0)
            for centre in plane.centroids[plane.classes == label]:
                ways = [(tuple(centre), tuple(place)) for place in own]
                axes.add_collection(LineCollection(ways, colors=COLOURS[kind], linewidths=0.5, alpha=0.35))
                axes.plot(*centre, "*", markersize=13, color=COLOURS[kind], markeredgecolor="black", zorder=4)
    axes.set_aspect("equal", adjustable="datalim")


def _legend(plane: CentroidPlane) -> list[Line2D]:
    marks = []
    for kind, title in KINDS.items():
        if (plane.kinds == kind).any():
            marks.append(
                Line2D([], [], linestyle="", marker="o", markersize=5, color=COLOURS[kind], label=title)
            )
    star = Line2D(
        [],
        [],
        linestyle="",
        marker="*",
        markersize=12,
        color="white",
        markeredgecolor="black",
        label="centroid",
    )
    return [*marks, star]


def of_run(run: TrainedRun) -> CentroidPlane | None:
    """From the run's weights and outputs, with the classes of its training; None without a memory."""
    run = run.as_trained
    memory = find_centroids(run.folder.load_weights(run.folder.model))
    if memory is None:
        return None
    return centroid_plane(memory, run.outputs["test"], run.unseen, run.groups)


def draw(runs: Runs) -> Figure:
    """Of those runs that have a memory."""
    return centroids_figure({run.name: plane for run in runs if (plane := of_run(run)) is not None})


FIGURE = RunFigure(
    order=70,
    name="centroids",
    title="Memory centroids in feature space (PCA)",
    paper="Fig. 11",
    caption="The result of the paper's two steps, neighbourhood sampling and propagation: up to 4 many-shot "
    "and 4 few-shot classes with their centroids (stars) and 20 test images each, and open images, on their "
    "first two principal components (PC), in which distances are meaningful. Look for centroids amid the "
    "images of their class, and for open images away from all centroids.",
    needs="a method with a memory, and the run's weights",
    draw=draw,
    choose=with_meta_embedding,
)
