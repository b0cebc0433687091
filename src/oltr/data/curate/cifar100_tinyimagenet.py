"""CIFAR-100 with TinyImageNet as open set: the balanced benchmark of the paper's open-set detection table."""

from __future__ import annotations

import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.cifar_files import CIFAR100, whole_cifar
from oltr.data.curate.open_images import read_open_folder
from oltr.data.curate.small_copies import small_copies
from oltr.data.manifest import Manifest
from oltr.errors import UserError

NAME, SIZE = "cifar100-tinyimagenet", 32

PUBLISHED = {
    "images": {"train": 50_000, "test": 10_000, "open": 10_000},
    "classes": 100,
    "max": 500,
    "min": 500,
    "shots": {"many": 100, "medium": 0, "few": 0},
}


@CURATORS.register(NAME)
def curate_cifar100_tinyimagenet(options: CurateOptions) -> Curated:
    """All of CIFAR-100 as it is, and TinyImageNet's test images as the open split, at 32 px."""
    options.allow(NAME, "root", "open_root", "open_images", "size")
    if options.open_root is None:
        raise UserError(
            f"TinyImageNet is needed to make {NAME}.",
            try_this="--open-root with the folder of its 10,000 test images, of 32 × 32 pixels; "
            "or the originals and --open-images",
        )
    files = whole_cifar(CIFAR100, options.root, NAME)
    opened = read_open_folder(options.open_root.expanduser(), set(files.table["label"]))
    known, root = files.table, files.root
    if options.open_images is not None:
        opened = small_copies(opened, options.open_images, options.seed, options.progress)
        if root is not None:
            # Pictures are written to the out folder, where all relative paths then start.
            known, root = known.assign(path=[str(root.absolute() / path) for path in known["path"]]), None
    table = pd.concat([known, opened.table], ignore_index=True)
    return Curated(
        name=NAME,
        manifest=Manifest.build(table, options.out if root is None else root),
        source=f"CIFAR-100, {options.root}; TinyImageNet, {options.open_root}",
        recipe=(
            "Training: all official training images.",
            "Validation: none.",
            "Test: the official test set.",
            opened.sentence,
        ),
        published=PUBLISHED,
        remarks=(
            *CIFAR100.remarks,
            "TinyImageNet has pictures of some CIFAR-100 classes (bee, lion, mushroom, orange ...); "
            "the published table counts them as open.",
        ),
        pictures=files.pictures | opened.pictures,
        seed=options.seed if options.open_images == "crop" else None,
        pack_size=options.size or SIZE,
    )
