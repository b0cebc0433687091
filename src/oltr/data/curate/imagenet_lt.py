"""ImageNet-LT: the released lists, or the paper's recipe on an ILSVRC2012 tree."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.files import image_paths, training_images
from oltr.data.curate.imagenet_labels import WNID, flat_labels
from oltr.data.curate.open_images import open_table, read_open_folder
from oltr.data.curate.pareto import draw_pareto, same_classes
from oltr.data.curate.published import IMAGENET_LT
from oltr.data.curate.released import curate_lists
from oltr.data.manifest import Manifest
from oltr.errors import UserError
from oltr.wording import Caution, count

NAME, TREE = "imagenet-lt", "an ILSVRC2012 tree: train/WNID/*.JPEG, and val/ with or without class folders"
CLASSES, LARGEST = 1000, 1280
ILSVRC2010 = re.compile(r"ILSVRC2010_val_\d+")


@CURATORS.register(NAME)
def curate_imagenet_lt(options: CurateOptions) -> Curated:
    """With lists those; else Pareto(α = 6) from 1280 to 5, 20 for validation, official val as test."""
    if options.lists is not None:
        return curate_lists(
            options, NAME, "ILSVRC2012 and ILSVRC2010", TREE, IMAGENET_LT, class_of, _flat_val
        )
    options.allow(NAME, "root", "index", "order", "open_root", "size")
    paths = image_paths(options, NAME, TREE, ("train", "val"))
    drawn = draw_pareto(
        training_images(paths, ("train",), ("val",)), class_of, LARGEST, options.order, options.seed
    )
    classes = sorted(set(drawn.table["label"]))
    root = options.image_root
    test = _test_rows([path for path in paths if path.startswith("val/")], classes, root)
    parts, notes = [drawn.table, test], drawn.notes
    tested = "the official validation set" if len(test) else "none, there were no val images"
    recipe = [*drawn.recipe, f"Test: {tested}."]
    if options.open_root is not None:
        opened, sentence = _open_rows(options.open_root.expanduser(), set(classes))
        parts.append(opened)
        recipe.append(sentence)
    if len(classes) != CLASSES:
        notes = (*notes, Caution(f"ILSVRC2012 has {CLASSES:,} classes; here are {len(classes):,}."))
    return Curated(
        name=NAME,
        manifest=Manifest.build(pd.concat(parts, ignore_index=True), root, notes),
        source=f"ILSVRC2012, {options.root or options.index}",
        recipe=tuple(recipe),
        seed=options.seed,
        published=IMAGENET_LT.facts,
        remarks=("The released set is one random draw of this distribution: its class sizes differ.",),
        pack_size=options.size or 256,
    )


def class_of(path: str) -> str:
    """The wnid: the folder that an image lies in, if it is not train/ itself."""
    return path.removeprefix("train/").rpartition("/")[0].rpartition("/")[2]


def _flat_val(path: str) -> tuple[str, ...]:
    """Where a listed validation image lies when there are no class folders."""
    return (f"val/{PurePosixPath(path).name}",) if path.startswith("val/") else ()


def _test_rows(images: list[str], classes: list[str], root: Path) -> pd.DataFrame:
    labels = {image: class_of(image) for image in images if image.count("/") > 1}
    if flat := [image for image in images if image not in labels]:
        labels |= flat_labels(flat, root, 2012, classes)
    if images:
        same_classes(set(classes), set(labels.values()), "train/", "val/")
    return pd.DataFrame({"path": images, "label": [labels[image] for image in images], "split": "test"})


def _open_rows(folder: Path, known: set[str]) -> tuple[pd.DataFrame, str]:
    """Open images: of ILSVRC2010's validation set those whose class ILSVRC2012 lacks, of others all."""
    table = open_table(folder)
    table = table[[bool(ILSVRC2010.match(PurePosixPath(path).name)) for path in table["path"]]]
    if table.empty:
        opened = read_open_folder(folder, known)
        return opened.table, opened.sentence
    images = list(table["path"])
    labels = {image: class_of(image) for image in images}
    if flat := [image for image, label in labels.items() if not WNID.fullmatch(label)]:
        labels |= flat_labels(flat, folder, 2010, [])
    table = table.assign(label=[labels[image] for image in images])
    table = table[~table["label"].isin(known)].reset_index(drop=True)
    if table.empty:
        raise UserError(f"All ILSVRC2010 images in {folder} show known classes: none can be open.")
    return table, (
        f"Open: the {len(table):,} ILSVRC2010 validation images of the "
        f"{count(table['label'].nunique(), 'class')} that training does not know."
    )
