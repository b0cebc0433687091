"""Map-style datasets of (image, label) pairs as a manifest; images are read on demand."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from torch.utils.data import Subset

from oltr.console import console
from oltr.data.folders import SPLIT_FOLDERS
from oltr.data.items import Items, Place, class_name, dataset_name, get_item
from oltr.data.manifest import Manifest
from oltr.data.split import Flat, split_notes, split_of
from oltr.data.validate import SPLITS, UNNAMED
from oltr.errors import UserError
from oltr.files import is_utf8
from oltr.registry import unknown_name
from oltr.wording import first_few

DIGITS = 6  # of the numbers in paths such as train/000123


def is_dataset(source: Any) -> bool:
    """Whether an object has a length and items by number."""
    kind = type(source)
    return hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and not isinstance(source, type)


def read_datasets(source: Any, root: Path, seed: int = 0, flat: Flat = "split") -> Manifest:
    """A manifest of one dataset, split as a flat folder is, or of one per split; paths start at `root`."""
    datasets = _by_split(source) if isinstance(source, Mapping) else {"": source}
    classes = {split: _classes(dataset, dataset_name(split)) for split, dataset in datasets.items()}
    labels = {split: _labels(dataset, split, classes[split]) for split, dataset in datasets.items()}
    paths = _paths(datasets, root)
    rows: list[tuple[str, str, str]] = []
    places: dict[str, Place] = {}
    for split, names in labels.items():
        given = [split] * len(names) if split else split_of(names, flat, seed)
        rows += zip(paths[split], names, given, strict=True)
        for index, (path, label) in enumerate(zip(paths[split], names, strict=True)):
            places[path] = Place(split, index, None if split == "open" else label)
    notes = [] if "" not in datasets else split_notes("The dataset", len(rows), flat, seed)
    return Manifest.build(
        pd.DataFrame(rows, columns=["path", "label", "split"]),
        root,
        tuple(notes),
        items=Items(datasets, classes, places),
        split_made="" in datasets and flat == "split",
    )


def _by_split(source: Mapping[Any, Any]) -> dict[str, Any]:
    """Datasets by split name, in the order of `SPLITS`."""
    found: dict[str, Any] = {}
    for key, dataset in source.items():
        split = SPLIT_FOLDERS.get(str(key).lower())
        if split is None:
            raise unknown_name("split", str(key), SPLITS)
        if split in found:
            raise UserError(f"Two datasets are the {split} split: {first_few(source)}.")
        if not is_dataset(dataset) or isinstance(dataset, (str, Mapping, pd.DataFrame)):
            raise UserError(
                f"The {split} split is a {type(dataset).__name__}.",
                try_this="a map-style Dataset: an object with a length and (image, label) items by number",
            )
        found[split] = dataset
    if not found:
        raise UserError("There is no dataset.", try_this='{"train": dataset, "val": ..., "test": ...}')
    return {split: found[split] for split in SPLITS if split in found}


def _labels(dataset: Any, split: str, classes: list[str] | None) -> list[str]:
    """The class of each item, from the dataset's own list of labels or else from the items."""
    name, number = dataset_name(split), _length(dataset)
    if not number:
        raise UserError(f"{name.capitalize()} {'is empty' if number == 0 else 'has no length'}.")
    if split == "open":
        return [UNNAMED] * number
    listed = _listed(dataset, "targets", "labels")
    if listed is None:
        with console.progress("reading labels") as progress:
            listed = []
            for index in range(number):
                listed.append(get_item(dataset, index, name)[1])
                progress(index + 1, number)
    return [class_name(label, classes, index, name) for index, label in enumerate(listed)]


def _classes(dataset: Any, name: str) -> list[str] | None:
    """The class names that the dataset itself has, torchvision's `classes`."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    names = getattr(dataset, "classes", None)
    if names is None or isinstance(names, str) or not _length(names):
        return None
    # ImageNet's are tuples of synonyms.
    texts = [(", ".join(map(str, each)) if isinstance(each, tuple) else str(each)).strip() for each in names]
    if twice := [text for text, times in Counter(texts).items() if times > 1]:
        raise UserError(f"The `classes` of {name} have a name twice: {first_few(twice)}.")
    return texts


def _paths(datasets: Mapping[str, Any], root: Path) -> dict[str, list[str]]:
    """A path for each item: its file where all datasets list files, else its split and number."""
    files = {split: _files(dataset, root) for split, dataset in datasets.items()}
    known = {split: paths for split, paths in files.items() if paths is not None}
    if len(known) == len(datasets):
        return known
    return {
        split: [f"{split or 'images'}/{index:0{DIGITS}d}" for index in range(len(dataset))]
        for split, dataset in datasets.items()
    }


def _files(dataset: Any, root: Path) -> list[str] | None:
    """The image files of a dataset, torchvision's `samples`; None where it does not list them, each once."""
    samples = _listed(dataset, "samples", "imgs")
    if samples is None or not all(isinstance(each, (tuple, list)) and each for each in samples):
        return None
    if not all(isinstance(each[0], (str, os.PathLike)) for each in samples):
        return None
    files = [Path(each[0]).absolute() for each in samples]
    paths = [(file.relative_to(root) if file.is_relative_to(root) else file).as_posix() for file in files]
    kept = all(path == path.strip() and is_utf8(path) for path in paths)  # as they are, in a table
    return paths if kept and len(set(paths)) == len(paths) else None


def _listed(dataset: Any, *names: str) -> Sequence[Any] | None:
    """The first of these attributes that has an entry for each item, also of the dataset behind a Subset."""
    if isinstance(dataset, Subset):
        whole = _listed(dataset.dataset, *names)
        return None if whole is None else [whole[int(index)] for index in dataset.indices]
    for name in names:
        values: Any = getattr(dataset, name, None)
        if _length(values) == len(dataset) and not isinstance(values, (str, Mapping)):
            entries = values.tolist() if hasattr(values, "tolist") else list(values)
            change = getattr(dataset, "target_transform", None) if name in ("targets", "labels") else None
            return entries if change is None else [change(entry) for entry in entries]
    return None


def _length(values: Any) -> int | None:
    try:
        return len(values)
    except (TypeError, NotImplementedError):
        return None
