"""Places-LT: the released lists, or the paper's recipe on Places365-standard."""

from __future__ import annotations

from pathlib import Path

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.open_images import read_open_folder
from oltr.data.curate.pareto import Tree, curate_tree
from oltr.data.curate.published import PLACES_LT_LISTS, PLACES_LT_PAPER
from oltr.data.curate.released import curate_lists
from oltr.data.lists import list_rows
from oltr.errors import UserError
from oltr.wording import Caution

NAME = "places-lt"
FORM = "Places365-standard: data_256/a/airfield/*.jpg, val_256/*.jpg, places365_val.txt"
LARGEST = 4980  # training images of a class
TRAIN_TOPS = ("data_256", "data_256_standard", "data_large", "data_large_standard", "train")
VAL_TOPS = ("val_256", "val_large", "val")
CHALLENGE, VAL_LIST, CATEGORIES = (
    "places365_train_challenge.txt",
    "places365_val.txt",
    "categories_places365.txt",
)
FILE_LISTS = ("", "filelist_places365-standard", "filelist_places365-challenge", "meta")


@CURATORS.register(NAME)
def curate_places_lt(options: CurateOptions) -> Curated:
    """With lists those; else Pareto(α = 6) from 4980 to 5, 20 for validation, official val as test."""
    if options.lists is not None:
        source = "Places365-standard and Places-Extra69"
        return curate_lists(options, NAME, source, FORM, PLACES_LT_LISTS, class_of, _other_tops)
    order = options.order or _beside(options.image_root, CHALLENGE)
    text = f"The paper orders classes by their size in Places365-challenge: --order {CHALLENGE} does so."
    notes = () if order is not None else (Caution(text),)
    tree = Tree(
        name=NAME,
        title="Places365-standard",
        form=FORM,
        train=TRAIN_TOPS,
        val=VAL_TOPS,
        largest=LARGEST,
        published=PLACES_LT_PAPER,
        class_of=class_of,
        labels=_val_labels,
        open_images=read_open_folder,
    )
    return curate_tree(options, tree, order, notes, PLACES_LT_PAPER.remarks)


def class_of(path: str) -> str:
    """The scene: data_256/a/arena/hockey/1.jpg is arena/hockey."""
    parts = path.split("/")[:-1]
    if parts and parts[0] in TRAIN_TOPS + VAL_TOPS:
        parts = parts[1:]
    if len(parts) > 1 and len(parts[0]) == 1:  # the initial, under which scenes are sorted
        parts = parts[1:]
    return "/".join(parts)


def _other_tops(path: str) -> tuple[str, ...]:
    top, _, rest = path.partition("/")
    tops = TRAIN_TOPS if top in TRAIN_TOPS else VAL_TOPS if top in VAL_TOPS else ()
    return tuple(f"{other}/{rest}" for other in tops if other != top)


def _val_labels(images: list[str], classes: list[str], root: Path) -> dict[str, str]:
    labels = {image: class_of(image) for image in images}
    if flat := [image for image, label in labels.items() if not label]:
        by_name = _official_val(root)
        labels |= {image: by_name.get(Path(image).name, "") for image in flat}
        if unlisted := sum(not label for label in labels.values()):
            raise UserError(f"{VAL_LIST} in {root} lacks {unlisted:,} of the validation images.")
    return labels


def _official_val(root: Path) -> dict[str, str]:
    """File name → scene of the flat validation folder."""
    files = {name: _beside(root, name) for name in (CATEGORIES, VAL_LIST)}
    if lacking := [name for name, file in files.items() if file is None]:
        raise UserError(
            f"The validation images have no class folders, and {root} has no {' and no '.join(lacking)}.",
            try_this="put the file lists of Places365 into the root",
        )
    scenes, rows = (list_rows(file, "test") for file in files.values() if file is not None)
    names = {number: class_of(scene.lstrip("/") + "/") for scene, number in scenes}
    return {image: names.get(number, "") for image, number in rows}


def _beside(root: Path, name: str) -> Path | None:
    """A file list of Places365 in the root or in the folder it is distributed in."""
    files = (root / folder / name for folder in FILE_LISTS)
    return next((file for file in files if file.is_file()), None)
