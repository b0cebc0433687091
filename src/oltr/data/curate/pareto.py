"""The recipe of ImageNet-LT and Places-LT: Pareto(α = 6) class sizes, images drawn at random."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from oltr.data.curate.benchmark import Curated, CurateOptions
from oltr.data.curate.class_order import largest_first, read_order
from oltr.data.curate.files import image_paths, training_images
from oltr.data.curate.open_images import OpenImages
from oltr.data.curate.published import Published
from oltr.data.longtail import pareto_counts
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.wording import Caution, count, first_few

SMALLEST, ALPHA, VAL_PER_CLASS = 5, 6.0, 20


@dataclass(frozen=True)
class Tree:
    """The folders of an original set of images, and the benchmark that is made from it."""

    name: str  # of the benchmark
    title: str  # of the original
    form: str  # what the root should hold, in words
    train: tuple[str, ...]  # top folders of training images
    val: tuple[str, ...]  # of validation images, which are the benchmark's test images
    largest: int  # training images of the largest class
    published: Published
    class_of: Callable[[str], str]  # path of a training image → class
    labels: Callable[[list[str], list[str], Path], dict[str, str]]  # val images, classes, root → labels
    open_images: Callable[[Path, set[str]], OpenImages]  # folder, known classes


def curate_tree(
    options: CurateOptions, tree: Tree, order: Path | None, notes: tuple[str, ...], remarks: tuple[str, ...]
) -> Curated:
    """Pareto(α = 6) class sizes, 20 images of each class for validation, the official val images as test."""
    options.allow(tree.name, "root", "index", "order", "open_root", "size")
    paths, root = image_paths(options, tree.name, tree.form, (*tree.train, *tree.val)), options.image_root
    images = training_images(paths, tree.train, tree.val)
    drawn = draw_pareto(images, tree.class_of, tree.largest, order, options.seed)
    classes = sorted(set(drawn.table["label"]))
    test = [path for path in paths if path.split("/")[0] in tree.val]
    labels = tree.labels(test, classes, root)
    if test:
        _require_same_classes(set(classes), set(labels.values()))
    rows = {"path": test, "label": [labels[path] for path in test], "split": "test"}
    parts = [drawn.table, pd.DataFrame(rows)]
    tested = "the official validation set" if test else "none, there were no val images"
    recipe = [*drawn.recipe, f"Test: {tested}."]
    if options.open_root is not None:
        opened = tree.open_images(options.open_root.expanduser(), set(classes))
        parts.append(opened.table)
        recipe.append(opened.sentence)
    if len(classes) != (expected := tree.published.facts["classes"]):
        text = f"{tree.title} has {expected:,} classes; here are {len(classes):,}."
        notes = (*notes, Caution(text))
    return Curated(
        name=tree.name,
        manifest=Manifest.build(pd.concat(parts, ignore_index=True), root, (*drawn.notes, *notes)),
        source=f"{tree.title}, {options.root or options.index}",
        recipe=tuple(recipe),
        seed=options.seed,
        published=tree.published.facts,
        remarks=remarks,
        pack_size=options.size or 256,
        pack_resize="short-side",
    )


@dataclass(frozen=True)
class Drawn:
    """Rows of train and val, how they were drawn, in sentences, and messages for the user."""

    table: pd.DataFrame
    recipe: tuple[str, ...]
    notes: tuple[str, ...]


def draw_pareto(
    paths: Sequence[str], class_of: Callable[[str], str], largest: int, order_file: Path | None, seed: int
) -> Drawn:
    """A long-tailed train split and a validation split from all training images of a set.

    Classes with more images get more, unless an order file says which come first.
    """
    labels = np.array([class_of(path) for path in paths])
    pools = class_pools(labels)
    if "" in pools:
        raise UserError(f"{count(len(pools['']), 'training image')} outside any class folder.")
    ranks = None if order_file is None else read_order(order_file, list(pools), class_of)
    order = largest_first({name: len(pool) for name, pool in pools.items()}, ranks, seed)
    counts = pareto_counts(len(order), largest, SMALLEST, ALPHA)
    train, val, notes = draw(pools, order, counts, VAL_PER_CLASS, seed)
    chosen = np.concatenate([train, val])
    table = pd.DataFrame(
        {
            "path": [paths[position] for position in chosen],
            "label": labels[chosen],
            "split": np.repeat(["train", "val"], [len(train), len(val)]),
        }
    )
    ordered = f"as in {order_file.name}" if order_file else "those with more images first"
    recipe = (
        f"Training: Pareto(α = {ALPHA:g}) class sizes from {largest:,} to {SMALLEST} (the medians of sorted "
        "draws), images of each class drawn at random.",
        f"Classes from large to small: {ordered}, ties drawn by the seed.",
        f"Validation: {VAL_PER_CLASS} unused training images of each class.",
    )
    return Drawn(table, recipe, notes)


def class_pools(labels: np.ndarray) -> dict[str, np.ndarray]:
    """Class → positions of its images, both in order."""
    names, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    pools = np.split(np.argsort(numbers, kind="stable"), np.cumsum(sizes)[:-1])
    return dict(zip(names.tolist(), pools, strict=True))


def draw(
    pools: Mapping[str, np.ndarray], order: Sequence[str], counts: np.ndarray, val_per_class: int, seed: int
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Positions of training and of validation images, and notes.

    Class order[c] gives counts[c] of its pool to training; validation takes `val_per_class` of those left.
    Each class has its own random numbers, so that it stays the same when others come or go.
    """
    lacking = [c for c, name in enumerate(order) if len(pools[name]) < counts[c]]
    if lacking:
        named = first_few(f"{order[c]} (has {len(pools[order[c]])}, needs {counts[c]})" for c in lacking)
        raise UserError(
            f"Not enough images in {count(len(lacking), 'class')}: {named}.",
            f"The classes of this recipe have {counts[0]:,} to {counts[-1]:,} training images, "
            f"and {val_per_class} more each for validation.",
            "`oltr data longtail SOURCE --max N` makes a long tail of any height",
        )
    train, val, short = [], [], []
    for name, size in zip(order, counts, strict=True):
        shuffled = np.random.default_rng([seed, zlib.crc32(name.encode())]).permutation(pools[name])
        train.append(np.sort(shuffled[:size]))
        val.append(np.sort(shuffled[size : size + val_per_class]))
        if len(val[-1]) < val_per_class:
            short.append(f"{name} ({len(val[-1])})")
    notes: tuple[str, ...] = ()
    if short:
        text = f"Fewer than {val_per_class} unused images for validation in {count(len(short), 'class')}"
        notes = (Caution(f"{text}: {first_few(short)}."),)
    none = np.empty(0, dtype=np.int64)
    return np.concatenate([none, *train]), np.concatenate([none, *val]), notes


def _require_same_classes(train: set[str], val: set[str]) -> None:
    for has, lacks, where in ((train, val, "validation"), (val, train, "training")):
        if lacking := sorted(has - lacks):
            raise UserError(
                f"{count(len(lacking), 'class')} missing in the {where} images: {first_few(lacking)}.",
                "Training and validation images must show the same classes.",
            )
