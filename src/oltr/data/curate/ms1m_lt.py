"""MS1M-LT: a subset of MS1M-ArcFace in which large identities keep a larger share of their images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from oltr.data.curate.benchmark import CURATORS, Curated, CurateOptions
from oltr.data.curate.files import image_paths
from oltr.data.curate.record_images import image_records, read_property
from oltr.data.manifest import Manifest
from oltr.data.records import record_path
from oltr.errors import UserError
from oltr.wording import Caution, count

NAME, WANTED = "ms1m-lt", "MS1M-ArcFace: the folder with train.rec, or a folder of images for each identity"
MS1M_IMAGES, KEPT, KEPT_IDENTITIES = 5_822_653, 887_500, 74_500
SIZE = 112  # pixels, of MS1M-ArcFace's own images


class Faces(NamedTuple):
    """All images there are, by identity, then by place."""

    root: Path
    codes: np.ndarray  # n, the number of each one's identity among `names`
    names: np.ndarray  # the identities
    path: Callable[[int], str]  # of an image by its number
    notes: tuple[str, ...] = ()


@CURATORS.register(NAME)
def curate_ms1m_lt(options: CurateOptions) -> Curated:
    """The images with the smallest u / n: u ~ U(0, 1), n the images of the identity; all for training."""
    options.allow(NAME, "root", "index", "size")
    file = _record_file(options)
    faces = _from_folders(options) if file is None else _from_records(file, options)
    images, identities = len(faces.codes), len(faces.names)
    if identities < 2:
        raise UserError(
            f"Two identities are the least; {options.root or options.index} has {identities}.",
            f"{NAME} is made from {WANTED}.",
        )
    total = round(images * KEPT / MS1M_IMAGES)
    if total == 0:
        raise UserError(f"Of {images} images none would be kept.", f"{NAME} keeps about one of seven.")
    rows = draw(faces.codes, total, options.seed)
    table = pd.DataFrame(
        {
            "path": [faces.path(row) for row in rows.tolist()],
            "label": faces.names[faces.codes[rows]],
            "split": "train",
        }
    )
    manifest = Manifest.build(table, faces.root, faces.notes)
    left_out = identities - len(manifest.classes)
    share = "" if images == MS1M_IMAGES else f", the paper's share ({KEPT:,} of {MS1M_IMAGES:,})"
    return Curated(
        name=NAME,
        manifest=manifest,
        source=f"MS1M-ArcFace, {options.root or options.index}",
        recipe=(
            f"Training: {total:,} of {images:,} images of {identities:,} identities{share}.",
            "An image is kept with a probability proportional to the number n of images of its identity: "
            "those with the smallest u / n are, where u is uniform between 0 and 1.",
            "Test: none; the paper evaluates on MegaFace.",
        ),
        seed=options.seed,
        published={"images": {"train": KEPT}, "classes": KEPT_IDENTITIES},
        remarks=(
            "The published figures are rounded: 887.5K images of 74.5K identities.",
            f"{left_out:,} of the {identities:,} identities were left without an image.",
            *_expected(file, identities),
        ),
        pack_size=options.size or SIZE,
    )


def draw(codes: np.ndarray, total: int, seed: int) -> np.ndarray:
    """Numbers of `total` images in rising order, each image as likely as its identity is large."""
    keys = np.random.default_rng(seed).random(len(codes)) / np.bincount(codes)[codes]
    return np.sort(np.argpartition(keys, total - 1)[:total])


def _record_file(options: CurateOptions) -> Path | None:
    """The record file that the root is or holds; None where the images are files of their own."""
    if options.root is None or options.index is not None:
        return None
    root = options.root.expanduser()
    file = root if root.is_file() else root / "train.rec"
    if root.is_file() and root.suffix != ".rec":
        raise UserError(f"{root} is no record file.", f"{NAME} is made from {WANTED}.")
    return file if file.is_file() else None


def _from_records(file: Path, options: CurateOptions) -> Faces:
    offsets, identities = image_records(file, options.progress)
    names, codes = np.unique(identities, return_inverse=True)
    return Faces(file.parent, codes, names.astype(str), lambda row: record_path(file.name, int(offsets[row])))


def _from_folders(options: CurateOptions) -> Faces:
    """Images labelled with their folder, relative to the root."""
    paths = image_paths(options, NAME, WANTED)
    loose = [path for path in paths if "/" not in path]
    paths = [path for path in paths if "/" in path]
    codes, names = pd.factorize(np.array([path.rpartition("/")[0] for path in paths], dtype=object))
    note = Caution(f"Ignored: {count(len(loose), 'image')} outside any identity's folder.")
    root = options.image_root
    return Faces(root, codes, names, paths.__getitem__, (note,) if loose else ())


def _expected(file: Path | None, identities: int) -> tuple[str, ...]:
    """A remark where the file `property` gives another number of identities."""
    expected = None if file is None else read_property(file)
    if expected in (None, identities):
        return ()
    return (f"The file property gives {expected:,} identities, {file} has {identities:,}.",)
