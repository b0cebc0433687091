"""SUN-LT: SUN-397 with the train and test lists of Wang et al., validation images from the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.files import image_paths
from oltr.data.curate.pareto import draw
from oltr.data.curate.published import SUN_LT
from oltr.data.curate.released import listed_files, place
from oltr.data.lists import list_lines
from oltr.data.manifest import Manifest
from oltr.data.scan import IMAGE_SUFFIXES
from oltr.errors import UserError

NAME, FORM = "sun-lt", "SUN-397: a/abbey/sun_*.jpg"
VAL_PER_CLASS = 5


@CURATORS.register(NAME)
def curate_sun_lt(options: CurateOptions) -> Curated:
    """The listed training and test images; 5 unused images of each class for validation, unless listed."""
    options.allow(NAME, "root", "lists", "index", "open_root", "size")
    if options.lists is None:
        raise UserError(
            "SUN-LT is defined by the lists of Wang et al. (Learning to Model the Tail, 2017).",
            try_this="--lists with the folder of *_train.txt and *_test.txt",
        )
    lists = listed_files(options.lists)
    rows = [(path, class_of(path), split) for split, file in lists.items() for path in listed_paths(file)]
    table = pd.DataFrame(rows, columns=["path", "label", "split"])
    table.loc[table["split"] == "open", "label"] = ""
    table, root, notes = place(table, options, NAME, FORM)
    recipe = [f"Training and test: the lists in {options.lists}."]
    if "val" not in lists:
        unused = sorted(set(image_paths(options, NAME, FORM)) - set(table["path"]))
        val, short = _validation(unused, sorted(set(table["label"]) - {""}), options.seed)
        table, notes = pd.concat([table, val], ignore_index=True), (*notes, *short)
        recipe.append(f"Validation: {VAL_PER_CLASS} images of each class that are in no list, by the seed.")
    return Curated(
        name=NAME,
        manifest=Manifest.build(table, root, notes),
        source=f"SUN-397, {options.root or options.index}",
        recipe=tuple(recipe),
        seed=None if "val" in lists else options.seed,
        published=SUN_LT.facts,
        pack_size=options.size or 256,
        pack_resize="short-side",
    )


def class_of(path: str) -> str:
    """The scene: SUN397/a/arch/indoor/sun_x.jpg is arch/indoor."""
    parts = path.split("/")[:-1]
    initial = next((place for place, part in enumerate(parts) if len(part) == 1), None)
    return "/".join(parts if initial is None else parts[initial + 1 :])


def listed_paths(file: Path) -> list[str]:
    """The paths of a list whose lines are `path`, as in SUN-397's own partitions, or `path label`."""
    paths = []
    for number, line in list_lines(file):
        path = line if line.lower().endswith(IMAGE_SUFFIXES) else line.rsplit(maxsplit=1)[0]
        if not path.lower().endswith(IMAGE_SUFFIXES):
            raise UserError(f"{file}, line {number} names no image: {line[:120]!r}.")
        paths.append(path.lstrip("/"))
    return paths


def _validation(unused: list[str], classes: list[str], seed: int) -> tuple[pd.DataFrame, tuple[str, ...]]:
    numbers: dict[str, list[int]] = {name: [] for name in classes}
    for number, path in enumerate(unused):
        if (name := class_of(path)) in numbers:
            numbers[name].append(number)
    pools = {name: np.array(own, dtype=np.int64) for name, own in numbers.items()}
    _, chosen, notes = draw(pools, classes, np.zeros(len(classes), dtype=int), VAL_PER_CLASS, seed)
    rows = [(unused[number], class_of(unused[number]), "val") for number in chosen]
    return pd.DataFrame(rows, columns=["path", "label", "split"]), notes
