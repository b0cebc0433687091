"""CIFAR-100-LT: the usual exponential subset of CIFAR-100, with validation images and an open set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.cifar_files import read_cifar100
from oltr.data.folders import SPLIT_FOLDERS, find_images
from oltr.data.longtail import exponential_counts
from oltr.data.manifest import Manifest
from oltr.data.validate import UNNAMED
from oltr.data.wording import count, first_few
from oltr.errors import UserError

CLASSES, TRAIN_PER_CLASS, VAL_PER_CLASS = 100, 500, 10
IMBALANCE = 100.0

# imbalance -> training images, smallest class, many/medium/few-shot classes
PUBLISHED = {100: (10_847, 5, (35, 35, 30)), 50: (12_608, 10, (41, 41, 18)), 10: (19_573, 50, (69, 31, 0))}


@CURATORS.register("cifar100-lt")
def curate_cifar100_lt(options: CurateOptions) -> Curated:
    """The first n_c = int(500 · IR^(−c/99)) images of each class; val from the unused ones, test as it is."""
    options.allow("cifar100-lt", "root", "open_root", "imbalance")
    if options.root is None:
        raise UserError(
            "CIFAR-100 is needed to make cifar100-lt.",
            try_this="--root with the archive cifar-100-python.tar.gz, its unpacked folder, or image folders",
        )
    imbalance = IMBALANCE if options.imbalance is None else options.imbalance
    files = read_cifar100(options.root.expanduser())
    table = long_tail_of(files.table, imbalance)
    recipe = [
        f"Training: n_c = int({TRAIN_PER_CLASS} · {imbalance:g}^(−c/{CLASSES - 1})) images of class c, "
        f"classes in alphabetical order: the first n_c by {files.order}.",
        f"Validation: the next {VAL_PER_CLASS} training images of each class, as far as there are any "
        "(the largest class has none).",
        "Test: the official test set.",
    ]
    if options.open_root is not None:
        opened = open_table(options.open_root.expanduser())
        table = pd.concat([table, opened], ignore_index=True)
        recipe.append(f"Open: all {len(opened):,} images of {options.open_root}.")
    root = options.out if files.pictures else options.root
    chosen = set(table["path"])
    return Curated(
        name="cifar100-lt",
        manifest=Manifest.build(table, root.expanduser().absolute()),
        source=f"CIFAR-100, {options.root}",
        recipe=tuple(recipe),
        published=published(imbalance),
        pictures={path: picture for path, picture in files.pictures.items() if path in chosen},
    )


def long_tail_of(table: pd.DataFrame, imbalance: float) -> pd.DataFrame:
    """Rows of CIFAR-100 (path, label, split train or test, in official order) to rows of CIFAR-100-LT."""
    train, test = (table[table["split"] == split] for split in ("train", "test"))
    groups = {str(name): np.asarray(rows) for name, rows in train.groupby("label").indices.items()}
    names = sorted(groups)
    _check_complete(groups, test)
    counts = exponential_counts(len(names), TRAIN_PER_CLASS, imbalance)
    parts: dict[str, list[np.ndarray]] = {"train": [], "val": []}
    for name, size in zip(names, counts, strict=True):
        parts["train"].append(groups[name][:size])
        parts["val"].append(groups[name][size : size + VAL_PER_CLASS])
    chosen = [train.iloc[np.concatenate(rows)].assign(split=split) for split, rows in parts.items()]
    return pd.concat([*chosen, test], ignore_index=True)[["path", "label", "split"]]


def open_table(folder: Path) -> pd.DataFrame:
    """All images below a folder as open rows, named by the class folder they lie in, if any."""
    if not folder.is_dir():
        raise UserError(
            f"The folder of open images {folder} is not there.", try_this="--open-root with a folder"
        )
    images = find_images(folder)
    if not images:
        raise UserError(f"No images were found in {folder}.", try_this="--open-root with a folder of images")
    labels = [Path(image).parent.name for image in images]
    return pd.DataFrame(
        {
            "path": [str(folder.absolute() / image) for image in images],
            "label": [UNNAMED if label.lower() in ("", *SPLIT_FOLDERS) else label for label in labels],
            "split": "open",
        }
    )


def published(imbalance: float) -> dict[str, object]:
    """The facts that papers print for an imbalance, in the shape of `stats`; none for unusual ones."""
    if imbalance not in PUBLISHED:
        return {}
    train, smallest, groups = PUBLISHED[int(imbalance)]
    return {
        "images": {"train": train, "test": 10_000},
        "classes": CLASSES,
        "max": TRAIN_PER_CLASS,
        "min": smallest,
        "shots": dict(zip(("many", "medium", "few"), groups, strict=True)),
    }


def _check_complete(groups: dict[str, np.ndarray], test: pd.DataFrame) -> None:
    if len(groups) != CLASSES or set(test["label"]) != set(groups):
        raise UserError(
            f"This is not CIFAR-100: {len(groups)} classes in train, {test['label'].nunique()} in test.",
            f"It has the same {CLASSES} in both.",
        )
    if lacking := [name for name in sorted(groups) if len(groups[name]) != TRAIN_PER_CLASS]:
        named = first_few(f"{name} ({len(groups[name])})" for name in lacking)
        raise UserError(
            f"This is not the whole CIFAR-100: {count(len(lacking), 'class')} without "
            f"{TRAIN_PER_CLASS} training images, {named}."
        )
