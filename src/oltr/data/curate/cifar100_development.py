"""CIFAR-100-LT for development: of the official training images alone, some classes of it unknown."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.cifar_files import CIFAR100, whole_cifar
from oltr.data.curate.cifar_lt import IMBALANCE, SIZE
from oltr.data.longtail import exponential_counts
from oltr.data.manifest import Manifest
from oltr.data.validate import natural_order

NAME = "cifar100-lt-development"
EVERY = 5  # of so many classes the last is open; of so many images of a class one is for measuring


@CURATORS.register(NAME)
def curate_cifar100_lt_development(options: CurateOptions) -> Curated:
    """What choices are made on, so that test images and other sets are left for the result."""
    options.allow(NAME, "root", "imbalance", "size")
    imbalance = IMBALANCE if options.imbalance is None else options.imbalance
    known = CIFAR100.classes - CIFAR100.classes // EVERY
    measured = CIFAR100.per_class["train"] // EVERY
    largest = CIFAR100.per_class["train"] - measured
    counts = exponential_counts(known, largest, imbalance)
    files = whole_cifar(CIFAR100, options.root, NAME, ("train",))
    table = development_part(files.table, counts, measured)
    chosen = set(table["path"])
    return Curated(
        name=NAME,
        manifest=Manifest.build(table, options.out if files.root is None else files.root),
        source=f"CIFAR-100, {options.root}: the official training images alone",
        recipe=(
            f"Open: every fifth class; the other {known}, in alphabetical order, are known.",
            f"Training: n_k = int({largest} · {imbalance:g}^(−k/{known - 1})) images of known class k, "
            f"the first n_k by {files.order}.",
            f"The last {measured} images of each class are for measuring: of a known class in turn "
            "validation and test, of an open one all are open.",
            "The official test images are not looked at.",
        ),
        pictures={path: picture for path, picture in files.pictures.items() if path in chosen},
        pack_size=options.size or SIZE,
    )


def development_part(train: pd.DataFrame, counts: np.ndarray, measured: int) -> pd.DataFrame:
    """Rows of the official training images (path, label, in order) to those of the development set."""
    groups = {str(name): np.asarray(rows) for name, rows in train.groupby("label").indices.items()}
    parts: dict[str, list[np.ndarray]] = {"train": [], "val": [], "test": [], "open": []}
    sizes = iter(counts)
    for number, name in enumerate(natural_order(set(groups))):
        rows, last = groups[name], groups[name][-measured:]
        if number % EVERY == EVERY - 1:
            parts["open"].append(last)
        else:
            parts["train"].append(rows[: next(sizes)])
            parts["val"].append(last[::2])
            parts["test"].append(last[1::2])
    chosen = [train.iloc[np.concatenate(rows)].assign(split=split) for split, rows in parts.items()]
    return pd.concat(chosen, ignore_index=True)[["path", "label", "split"]]
