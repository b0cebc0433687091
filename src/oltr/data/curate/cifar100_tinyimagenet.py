"""CIFAR-100 with TinyImageNet as open set: the balanced benchmark of the paper's open-set detection table."""

from __future__ import annotations

import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.cifar_files import CIFAR100, whole_cifar
from oltr.data.curate.open_images import read_open_folder
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
    """All of CIFAR-100 as it is, and a folder of resized TinyImageNet images as the open split."""
    options.allow(NAME, "root", "open_root", "size")
    if options.open_root is None:
        raise UserError(
            f"TinyImageNet is needed to make {NAME}.",
            try_this="--open-root with the folder of its 10,000 test images, resized to 32 × 32 pixels",
        )
    files = whole_cifar(CIFAR100, options.root, NAME)
    opened = read_open_folder(options.open_root.expanduser(), set(files.table["label"]))
    table = pd.concat([files.table, opened.table], ignore_index=True)
    return Curated(
        name=NAME,
        manifest=Manifest.build(table, options.out if files.root is None else files.root),
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
        pictures=files.pictures,
        pack_size=options.size or SIZE,
    )
