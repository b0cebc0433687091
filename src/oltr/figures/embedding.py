"""Where images lie in a network's feature space: t-SNE of direct features and meta-embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from oltr.errors import UserError
from oltr.figures.choose_runs import Runs, panels_of_the_same_images
from oltr.figures.figure import RunFigure
from oltr.figures.run_names import short_names
from oltr.figures.style import OPEN_COLOUR, SHOT_COLOURS, new_figure
from oltr.runs.outputs import Outputs
from oltr.wording import count

KINDS = {"many": "head (many-shot)", "few": "tail (few-shot)", "open": "open"}
COLOURS = {**SHOT_COLOURS, "open": OPEN_COLOUR}
MARKERS = "osD^vP<>*X"  # a class of each kind has a shape of its own, as far as they go
PER_LINE = 3
NEIGHBOURS = 30.0  # t-SNE's perplexity, less for a small sample
FEWEST = 4  # images; with fewer there is nothing to arrange


@dataclass(frozen=True, eq=False)
class Embedding:
    """n sampled images, first many-shot, then few-shot, then open ones, and their places in the plane."""

    kinds: np.ndarray  # n strings: many, few or open
    rows: np.ndarray  # n int64, row numbers into the test split, or into the open one for kind open
    labels: np.ndarray  # n int64, -1 = open
    direct: np.ndarray  # n×2 float32, t-SNE of the direct features
    meta: np.ndarray | None  # n×2 float32, t-SNE of the meta-embeddings; None without a memory
    seed: int


def embedding(
    test: Outputs,
    unseen: Outputs | None,
    groups: np.ndarray,
    *,
    classes: int = 5,
    images: int = 20,
    seed: int = 0,
) -> Embedding:
    """t-SNE of up to `classes` many- and few-shot classes with `images` images each, and as many open images.

    The sample depends on the labels, the shot groups of the K classes and the seed alone: all runs on the
    same data share it.
    """
    kinds, rows = sample_images(test, unseen, groups, classes, images, seed)
    is_open = kinds == "open"
    if len(rows) < FEWEST:
        raise UserError(
            f"There are only {len(rows)} many-shot, few-shot and open images; at least {FEWEST} are needed."
        )
    parts = [(test, rows[~is_open])] + ([(unseen, rows[is_open])] if unseen else [])
    direct = np.concatenate([part.features.numpy()[chosen] for part, chosen in parts])
    memories = [part.embeddings.numpy()[chosen] for part, chosen in parts if part.embeddings is not None]
    return Embedding(
        kinds=kinds,
        rows=rows,
        labels=np.concatenate([part.labels.numpy()[chosen] for part, chosen in parts]),
        direct=_plane(direct, seed),
        meta=_plane(np.concatenate(memories), seed) if len(memories) == len(parts) else None,
        seed=seed,
    )


def sample_images(
    test: Outputs, unseen: Outputs | None, groups: np.ndarray, classes: int, images: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Kinds and rows as in `Embedding`, of images drawn by the seed."""
    random, labels = np.random.default_rng(seed), test.labels.numpy()
    if classes < 1 or images < 1:
        raise UserError(f"At least one class and one image must be drawn; got {classes} and {images}.")
    kinds: list[str] = []
    rows: list[np.ndarray] = []
    for kind in ("many", "few"):
        present = np.intersect1d(np.flatnonzero(groups == kind), labels)
        for label in np.sort(random.permutation(present)[:classes]):
            rows.append(np.sort(random.permutation(np.flatnonzero(labels == label))[:images]))
            kinds += [kind] * len(rows[-1])
    if unseen:
        rows.append(np.sort(random.permutation(len(unseen))[: classes * images]))
        kinds += ["open"] * len(rows[-1])
    return np.array(kinds, dtype=str), np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)


def _plane(points: np.ndarray, seed: int) -> np.ndarray:
    """n×D -> n×2, around 0 and within -1..1."""
    from sklearn.manifold import TSNE  # slow to load, and for this alone
    from threadpoolctl import threadpool_limits

    if not np.isfinite(points).all():
        raise UserError(
            "The features hold NaN or infinite values.", "The training of this network probably diverged."
        )
    if not np.ptp(points, axis=0).any():
        raise UserError("All images have the same feature, so there is nothing to arrange.")
    tsne = TSNE(
        perplexity=min(NEIGHBOURS, (len(points) - 1) / 3),
        init="pca" if points.shape[1] > 1 else "random",
        random_state=seed,
    )
    with threadpool_limits(1):  # several threads add in any order, and t-SNE makes much of the difference
        places = tsne.fit_transform(points)
    places = places - places.mean(axis=0)
    return places / np.abs(places).max()


def embedding_figure(runs: Mapping[str, Embedding]) -> Figure:
    """Direct features and, where there is a memory, meta-embeddings of each run, of the same images."""
    if not runs:
        raise UserError("There is no run whose features could be drawn.")
    first = next(iter(runs.values()))
    if not all(np.array_equal(_images(run), _images(first)) for run in runs.values()):
        raise UserError("The runs show different images.", "Their data, counts or seeds differ.")
    panels: list[tuple[str, Embedding, np.ndarray]] = []
    for name, run in short_names(runs, 36).items():
        note = "" if run.meta is not None else " (there is no memory)"
        panels.append((f"{name}\ndirect features{note}", run, run.direct))
        if run.meta is not None:
            panels.append((f"{name}\nmeta-embeddings", run, run.meta))
    lines, columns = -(-len(panels) // PER_LINE), min(len(panels), PER_LINE)
    figure = new_figure(3.5 * columns, 0.5 + 3.5 * lines)
    for number, (title, run, places) in enumerate(panels):
        axes = figure.add_subplot(lines, columns, number + 1)
        _draw(axes, run, places)
        axes.set_title(title, loc="left", fontsize="medium")
    figure.legend(
        handles=_legend(first),
        title=f"images sampled with seed {first.seed}; one marker and colour per class",
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
    )
    return figure


def _images(run: Embedding) -> np.ndarray:
    return np.stack([run.labels, run.rows])


def _draw(axes: Axes, run: Embedding, places: np.ndarray) -> None:
    for kind in ("open", "many", "few"):  # the tail on top: it is what one looks for
        chosen = run.kinds == kind
        for number, label in enumerate(np.unique(run.labels[chosen])):
            x, y = places[chosen & (run.labels == label)].T
            marker = "." if kind == "open" else MARKERS[number % len(MARKERS)]
            axes.scatter(
                x, y, s=30 if kind == "open" else 14, c=COLOURS[kind], marker=marker, alpha=0.75, linewidths=0
            )
    axes.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal", xticks=[], yticks=[])
    axes.set_xlabel("t-SNE 1 (no unit)", fontsize="small")
    axes.set_ylabel("t-SNE 2 (no unit)", fontsize="small")
    axes.spines[:].set_color("0.8")


def _legend(run: Embedding) -> list[Line2D]:
    marks = []
    for kind, title in KINDS.items():
        labels = run.labels[run.kinds == kind]
        if len(labels):
            of = "" if kind == "open" else f" of {count(len(np.unique(labels)), 'class')}"
            label = f"{title}: {count(len(labels), 'image')}{of}"
            marks.append(Line2D([], [], linestyle="", marker="o", color=COLOURS[kind], label=label))
    return marks


def draw(runs: Runs) -> Figure:
    return embedding_figure(
        {run.name: embedding(run.outputs["test"], run.unseen, run.groups) for run in runs}
    )


FIGURE = RunFigure(
    order=60,
    name="tsne",
    title="t-SNE of the features",
    paper="Fig. 3",
    caption="A sample of up to 5 many-shot and 5 few-shot classes with 20 test images each, and up to 100 "
    "open images. Look for compact, well separated clusters, also of few-shot classes, and for open images "
    "outside them. In t-SNE, distances between far clusters mean nothing.",
    needs="test images; meta-embeddings need a memory",
    draw=draw,
    choose=panels_of_the_same_images,
)
