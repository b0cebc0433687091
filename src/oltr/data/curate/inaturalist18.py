"""iNaturalist 2018, which is long-tailed as it is: its training and validation lists."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.open_images import read_open_folder
from oltr.data.curate.published import INATURALIST18
from oltr.data.curate.released import place, released_table
from oltr.data.manifest import Manifest
from oltr.errors import UserError

NAME, FORM = "inaturalist18", "iNaturalist 2018: train_val2018/Plantae/7477/*.jpg"
OFFICIAL = {"train": "train2018.json", "test": "val2018.json"}


@CURATORS.register(NAME)
def curate_inaturalist18(options: CurateOptions) -> Curated:
    """The official training images to train on, the official validation images to test on."""
    options.allow(NAME, "root", "lists", "index", "open_root", "size")
    if options.lists is None:
        raise UserError(
            "iNaturalist 2018 is defined by its lists.",
            try_this="--lists with the folder of train2018.json, val2018.json, or of *_train.txt, *_val.txt",
        )
    folder = options.lists.expanduser()
    class_notes: tuple[str, ...] = ()
    if (folder / OFFICIAL["train"]).is_file():
        table = pd.concat([_official(folder / file, split) for split, file in OFFICIAL.items()])
        table = table.reset_index(drop=True)
    else:
        table, class_notes = released_table(options, class_of)
        table.loc[table["split"] == "val", "split"] = "test"
    lists_open = bool((table["split"] == "open").any())
    table, root, notes = place(table, options if lists_open else replace(options, open_root=None), NAME, FORM)
    recipe = [f"The lists in {options.lists}: training as it is, validation as test."]
    if options.open_root is not None and not lists_open:
        opened = read_open_folder(options.open_root.expanduser(), set(table["label"]))
        table = pd.concat([table, opened.table], ignore_index=True)
        recipe.append(opened.sentence)
    return Curated(
        name=NAME,
        manifest=Manifest.build(table, root, (*class_notes, *notes)),
        source=f"iNaturalist 2018, {options.root or options.index}",
        recipe=tuple(recipe),
        published=INATURALIST18.facts,
        remarks=INATURALIST18.remarks,
        pack_size=options.size or 256,
        pack_resize="short-side",
    )


def class_of(path: str) -> str:
    """The species: train_val2018/Plantae/7477/x.jpg is Plantae/7477."""
    return "/".join(path.split("/")[-3:-1])


def _official(file: Path, split: str) -> pd.DataFrame:
    """Rows of an official annotation file."""
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
        paths = {image["id"]: image["file_name"] for image in content["images"]}
        chosen = [str(paths[annotation["image_id"]]) for annotation in content["annotations"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{file} is no annotation file of iNaturalist 2018: {error!r}.") from None
    return pd.DataFrame({"path": chosen, "label": [class_of(path) for path in chosen], "split": split})
