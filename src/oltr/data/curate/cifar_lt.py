"""CIFAR-100-LT and CIFAR-10-LT: the usual long-tailed subsets, with validation images and an open set."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.cifar_files import CIFAR10, CIFAR100, Cifar, whole_cifar
from oltr.data.curate.open_images import read_open
from oltr.data.longtail import exponential_counts, pareto_counts
from oltr.data.manifest import Manifest
from oltr.data.validate import natural_order
from oltr.metrics.shots import GROUPS
from oltr.wording import Caution

SIZE, VAL_PER_CLASS, IMBALANCE = 32, 10, 100.0

# imbalance -> training images, smallest class, many/medium/few-shot classes where papers print them
PUBLISHED: dict[str, dict[float, tuple[int, int, tuple[int, ...]]]] = {
    CIFAR100.title: {
        100: (10_847, 5, (35, 35, 30)),
        50: (12_608, 10, (41, 41, 18)),
        10: (19_573, 50, (69, 31, 0)),
    },
    CIFAR10.title: {100: (12_406, 50, ()), 50: (13_996, 100, ()), 10: (20_431, 500, ())},
}

# CIFAR-10's classes and those of CIFAR-100 that look much like them
RELATIVES = {
    "automobile": ("bus", "pickup_truck", "streetcar"),
    "truck": ("bus", "pickup_truck", "streetcar", "tractor"),
    "cat": ("leopard", "lion", "tiger"),
    "dog": ("fox", "wolf"),
}


@CURATORS.register("cifar100-lt")
def curate_cifar100_lt(options: CurateOptions) -> Curated:
    """The first n_c = int(500 · IR^(−c/99)) images of each class; val from the unused ones, test as it is."""
    return _curate("cifar100-lt", CIFAR100, options)


@CURATORS.register("cifar10-lt")
def curate_cifar10_lt(options: CurateOptions) -> Curated:
    """The first n_c = int(5000 · IR^(−c/9)) images of each class; val from the unused ones, test as it is."""
    return _curate("cifar10-lt", CIFAR10, options)


def _curate(name: str, cifar: Cifar, options: CurateOptions) -> Curated:
    options.allow(name, "root", "open_root", "imbalance", "alpha", "size")
    imbalance = IMBALANCE if options.imbalance is None else options.imbalance
    counts = class_counts(cifar, imbalance, options.alpha)
    files = whole_cifar(cifar, options.root, name)
    table, root = long_tail_of(files.table, counts), files.root
    largest = cifar.per_class["train"]
    profile = (
        f"n_c = int({largest} · {imbalance:g}^(−c/{cifar.classes - 1})) images of class c"
        if options.alpha is None
        else f"Pareto(α = {options.alpha:g}) counts n_c from {largest} to {counts[-1]} "
        "(median order statistics)"
    )
    recipe = [
        f"Training: {profile}, classes in alphabetical order: the first n_c by {files.order}.",
        f"Validation: the next {VAL_PER_CLASS} training images of each class, as far as there are any "
        "(the largest class has none).",
        "Test: the official test set.",
    ]
    pictures, remarks = files.pictures, cifar.remarks
    if options.open_root is not None:
        known = set(table["label"])
        opened = read_open(options.open_root.expanduser(), known, cifar)
        if opened.pictures and root is not None:
            # Pictures are written to the out folder, where all relative paths then start.
            table, root = table.assign(path=[str(root.absolute() / path) for path in table["path"]]), None
        table = pd.concat([table, opened.table], ignore_index=True)
        pictures = pictures | opened.pictures
        recipe.append(opened.sentence)
        remarks = (*remarks, *relatives(known, set(opened.table["label"])))
    chosen = set(table["path"])
    return Curated(
        name=name,
        manifest=Manifest.build(table, options.out if root is None else root),
        source=f"{cifar.title}, {options.root}",
        recipe=tuple(recipe),
        published=published(cifar, imbalance) if options.alpha is None else {},
        remarks=remarks,
        pictures={path: picture for path, picture in pictures.items() if path in chosen},
        pack_size=options.size or SIZE,
    )


def class_counts(cifar: Cifar, imbalance: float, alpha: float | None = None) -> np.ndarray:
    """Training images per class: int(n_max · IR^(−c/(K−1))), or Pareto(α) between the same two ends."""
    counts = exponential_counts(cifar.classes, cifar.per_class["train"], imbalance)
    if alpha is None:
        return counts
    return pareto_counts(cifar.classes, int(counts[0]), int(counts[-1]), alpha)


def long_tail_of(table: pd.DataFrame, counts: np.ndarray) -> pd.DataFrame:
    """Rows of a whole CIFAR set (path, label, split, in official order) to rows of its long-tailed subset."""
    train, test = (table[table["split"] == split] for split in ("train", "test"))
    groups = {str(name): np.asarray(rows) for name, rows in train.groupby("label").indices.items()}
    parts: dict[str, list[np.ndarray]] = {"train": [], "val": []}
    for name, size in zip(natural_order(set(groups)), counts, strict=True):
        parts["train"].append(groups[name][:size])
        parts["val"].append(groups[name][size : size + VAL_PER_CLASS])
    chosen = [train.iloc[np.concatenate(rows)].assign(split=split) for split, rows in parts.items()]
    return pd.concat([*chosen, test], ignore_index=True)[["path", "label", "split"]]


def published(cifar: Cifar, imbalance: float) -> dict[str, object]:
    """The facts that papers print for an imbalance, in the shape of `stats`; none for unusual ones."""
    if imbalance not in PUBLISHED[cifar.title]:
        return {}
    train, smallest, groups = PUBLISHED[cifar.title][imbalance]
    facts: dict[str, object] = {
        "images": {"train": train, "test": 10_000},
        "classes": cifar.classes,
        "max": cifar.per_class["train"],
        "min": smallest,
    }
    return facts | {"shots": dict(zip(GROUPS, groups, strict=True))} if groups else facts


def relatives(known: Collection[str], opened: Collection[str]) -> tuple[str, ...]:
    """A caution where the other CIFAR set is open: which of its classes look like known ones."""
    pairs = [(ten, hundred) for ten, near in RELATIVES.items() for hundred in near]
    alike: dict[str, list[str]] = {}
    for one, other in (*pairs, *((hundred, ten) for ten, hundred in pairs)):
        if one in opened and other in known:
            alike.setdefault(one, []).append(other)
    if not alike:
        return ()
    named = "; ".join(f"{one} beside {', '.join(others)}" for one, others in alike.items())
    return (Caution(f"Some open classes show near relatives of known ones: {named}."),)
