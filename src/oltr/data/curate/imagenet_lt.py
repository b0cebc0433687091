"""ImageNet-LT: the released lists, or the paper's recipe on an ILSVRC2012 tree."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.imagenet_labels import WNID, flat_labels
from oltr.data.curate.open_images import OpenImages, open_table, read_open_folder
from oltr.data.curate.pareto import Tree, curate_tree
from oltr.data.curate.published import IMAGENET_LT
from oltr.data.curate.released import curate_lists
from oltr.errors import UserError
from oltr.wording import count

NAME, FORM = "imagenet-lt", "an ILSVRC2012 tree: train/WNID/*.JPEG, and val/ with or without class folders"
LARGEST = 1280  # training images of a class
ILSVRC2010 = re.compile(r"ILSVRC2010_val_\d+")


@CURATORS.register(NAME)
def curate_imagenet_lt(options: CurateOptions) -> Curated:
    """With lists those; else Pareto(α = 6) from 1280 to 5, 20 for validation, official val as test."""
    if options.lists is not None:
        return curate_lists(
            options, NAME, "ILSVRC2012 and ILSVRC2010", FORM, IMAGENET_LT, class_of, _flat_val
        )
    tree = Tree(
        name=NAME,
        title="ILSVRC2012",
        form=FORM,
        train=("train",),
        val=("val",),
        largest=LARGEST,
        published=IMAGENET_LT,
        class_of=class_of,
        labels=_val_labels,
        open_images=_open_images,
    )
    remark = "The released set is one random draw of this distribution: its class sizes differ."
    return curate_tree(options, tree, options.order, (), (remark,))


def class_of(path: str) -> str:
    """The wnid: the folder that an image lies in, if it is not train/ itself."""
    return path.removeprefix("train/").rpartition("/")[0].rpartition("/")[2]


def _flat_val(path: str) -> tuple[str, ...]:
    """Where a listed validation image lies when there are no class folders."""
    return (f"val/{PurePosixPath(path).name}",) if path.startswith("val/") else ()


def _val_labels(images: list[str], classes: list[str], root: Path) -> dict[str, str]:
    labels = {image: class_of(image) for image in images if image.count("/") > 1}
    flat = [image for image in images if image not in labels]
    return labels | flat_labels(flat, root, 2012, classes) if flat else labels


def _open_images(folder: Path, known: set[str]) -> OpenImages:
    """Open images: of ILSVRC2010's validation set those whose class ILSVRC2012 lacks, of others all."""
    table = open_table(folder)
    table = table[[bool(ILSVRC2010.match(PurePosixPath(path).name)) for path in table["path"]]]
    if table.empty:
        return read_open_folder(folder, known)
    images = list(table["path"])
    labels = {image: class_of(image) for image in images}
    if flat := [image for image, label in labels.items() if not WNID.fullmatch(label)]:
        labels |= flat_labels(flat, folder, 2010, [])
    table = table.assign(label=[labels[image] for image in images])
    table = table[~table["label"].isin(known)].reset_index(drop=True)
    if table.empty:
        raise UserError(f"All ILSVRC2010 images in {folder} show known classes: none can be open.")
    sentence = (
        f"Open: the {len(table):,} ILSVRC2010 validation images of the "
        f"{count(table['label'].nunique(), 'class')} that training does not know."
    )
    return OpenImages(table, sentence)
